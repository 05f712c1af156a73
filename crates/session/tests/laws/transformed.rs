//! The laws of transformed profiles: the same run gets the same verdict.

use std::collections::BTreeSet;
use std::path::Path;

use analyses::step::Step;
use rayon::prelude::*;
use serde_json::Value;
use session::report::json::as_json;
use session::{OpenError, Session};

use crate::laws::{causes, list, text};
use crate::profiles::Profile;
use crate::space::{Message, Space};
use crate::transform::{Run, Transformation, transform};
use crate::{Offence, Violation};

/// What came of all transformed profiles.
#[derive(Debug, Default)]
pub struct Outcome {
    pub count: usize,
    /// Profiles that were transformed.
    pub seen: BTreeSet<String>,
    pub offences: Vec<Offence>,
}

/// Larger ones take seconds each.
const LARGEST_BYTES: u64 = 400_000;

/// A profile, and what is said of it as it is.
struct Original {
    name: String,
    path: std::path::PathBuf,
    run: Run,
    bytes: usize,
    verdict: Verdict,
}

/// What must not change.
#[derive(Debug, Clone, PartialEq)]
struct Verdict {
    /// The rule of the first finding.
    first: Option<String>,
    mean_ms: Option<f64>,
    n_steps: u64,
    /// Of the steps, and of the first finding.
    confidence: [f64; 2],
    not_checked: Vec<String>,
    /// Rules and severities of all findings.
    findings: Vec<(String, String)>,
}

impl Verdict {
    fn of(report: &Value) -> Verdict {
        let steps = &report["steps"];
        let first = causes(report).first();
        let sure = |it: &Value| it["confidence"].as_f64().unwrap_or(0.0);
        Verdict {
            first: first.map(|it| text(it, "rule").to_owned()),
            mean_ms: steps["mean_ms"].as_f64(),
            n_steps: steps["count"].as_u64().unwrap_or(0),
            confidence: [sure(steps), first.map_or(0.0, sure)],
            not_checked: list(report, "not_checked")
                .map(|it| text(it, "rule").to_owned())
                .collect(),
            findings: causes(report)
                .iter()
                .map(|it| (text(it, "rule").to_owned(), text(it, "severity").to_owned()))
                .collect(),
        }
    }

    fn words(&self) -> String {
        let first = self.first.as_deref().unwrap_or("nothing");
        format!("{first} of {:?} ms, {} steps", self.mean_ms, self.n_steps)
    }
}

impl Original {
    /// `None` of runs that are no XSpace, are too large, or have other files beside them.
    fn read(profile: &Profile) -> Option<Original> {
        let session = profile.open()?;
        let files = &session.run.files;
        let is_profile = |it: &Path| it.to_string_lossy().ends_with(".xplane.pb");
        let profiles: Vec<_> = files.iter().filter(|it| is_profile(it)).collect();
        let sizes: u64 = profiles.iter().map(|it| it.metadata().map_or(0, |it| it.len())).sum();
        if profiles.is_empty() || sizes > LARGEST_BYTES {
            return None;
        }
        let mut spaces = Vec::new();
        for file in profiles {
            let name = file.file_name()?.to_string_lossy().into_owned();
            spaces.push((name, Space::decode(&std::fs::read(file).unwrap()[..]).ok()?));
        }
        let steps = session.tables().get::<Step>();
        let counted: Vec<&Step> = steps.iter().filter(|it| it.counts()).collect();
        let mut starts: Vec<i64> = counted.iter().map(|it| it.start_ps).collect();
        starts.extend(counted.last().map(|it| it.span().1));
        let run = Run { files: spaces, steps: starts };
        // Written again, since that is what all others are compared with.
        let report = report_of(&run).ok()?;
        Some(Original {
            name: profile.name.clone(),
            path: profile.path.clone(),
            run,
            bytes: sizes as usize,
            verdict: Verdict::of(&report),
        })
    }
}

/// A run's report, in memory where it is of one file.
fn report_of(run: &Run) -> Result<Value, OpenError> {
    let report = |it: Session| as_json(&it.report());
    if let [(name, space)] = &run.files[..] {
        return Session::from_bytes(name, space.encode_to_vec()).map(report);
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, space) in &run.files {
        std::fs::write(folder.path().join(name), space.encode_to_vec()).unwrap();
    }
    Session::open(folder.path()).map(report)
}

/// How often each transformation is made: small profiles take little time.
fn n_seeds(bytes: usize) -> u64 {
    match bytes {
        ..20_000 => 32,
        ..60_000 => 14,
        ..120_000 => 7,
        _ => 3,
    }
}

pub fn run(profiles: &[Profile]) -> Outcome {
    let originals: Vec<Original> = profiles.par_iter().filter_map(Original::read).collect();
    let mut outcome = Outcome::default();
    let mut cases = Vec::new();
    for original in &originals {
        outcome.seen.insert(original.name.clone());
        for how in Transformation::ALL {
            cases.extend((0..n_seeds(original.bytes)).map(|seed| (original, how, seed)));
        }
    }
    let found: Vec<Vec<Offence>> =
        cases.into_par_iter().filter_map(|(it, how, seed)| check(it, how, seed)).collect();
    outcome.count = found.len();
    outcome.offences = found.into_iter().flatten().collect();
    let copies: Vec<Vec<Offence>> = originals.par_iter().map(check_copy).collect();
    outcome.count += copies.len();
    outcome.offences.extend(copies.into_iter().flatten());
    outcome
}

/// `None` where there was nothing to transform.
fn check(original: &Original, how: Transformation, seed: u64) -> Option<Vec<Offence>> {
    let new = transform(&original.run, how, seed)?;
    let offence =
        |what: Violation| Offence { law: how.name(), profile: original.name.clone(), what };
    let report = match report_of(&new) {
        Ok(report) => report,
        Err(error) => {
            return Some(vec![offence(Violation::hard(format!("cannot be read: {error}")))]);
        }
    };
    let (before, after) = (&original.verdict, Verdict::of(&report));
    let found = match how {
        Transformation::Cut => after_cut(before, &after),
        _ => after_same(before, &after),
    };
    Some(found.into_iter().map(offence).collect())
}

fn after_same(before: &Verdict, after: &Verdict) -> Vec<Violation> {
    let same_mean = match (before.mean_ms, after.mean_ms) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a,
        (a, b) => a == b,
    };
    if before.first != after.first || !same_mean {
        return vec![Violation::hard(format!("{}; before, {}", after.words(), before.words()))];
    }
    if before.findings != after.findings {
        let text = format!("{:?}; before, {:?}", after.findings, before.findings);
        return vec![Violation::soft(text)];
    }
    Vec::new()
}

/// Half of a run says the same, or says why it cannot.
fn after_cut(before: &Verdict, after: &Verdict) -> Vec<Violation> {
    let less_sure = (0..2).any(|it| after.confidence[it] < before.confidence[it]);
    let not_checked = before.first.as_ref().is_some_and(|it| after.not_checked.contains(it));
    match before.first == after.first || less_sure || not_checked {
        true => Vec::new(),
        false => vec![Violation::hard(format!("{}; before, {}", after.words(), before.words()))],
    }
}

/// Another name of the folder changes nothing but the name.
fn check_copy(original: &Original) -> Vec<Offence> {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("another name");
    copy_all(&original.path, &copy);
    let report = |path: &Path| {
        let mut report = as_json(&Session::open(path).unwrap().report());
        report["run"]["path"].take();
        report["run"]["name"].take();
        report
    };
    let (before, after) = (report(&original.path), report(&copy));
    match before == after {
        true => Vec::new(),
        false => {
            let keys = before.as_object().into_iter().flatten();
            let differ: Vec<&String> =
                keys.filter(|it| after[it.0] != *it.1).map(|it| it.0).collect();
            let what = Violation::hard(format!("a copy of the folder differs in {differ:?}"));
            vec![Offence { law: "copy", profile: original.name.clone(), what }]
        }
    }
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|it| it.unwrap()) {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_all(&entry.path(), &target),
            false => _ = std::fs::copy(entry.path(), target).unwrap(),
        }
    }
}
