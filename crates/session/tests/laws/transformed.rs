//! The laws of transformed profiles: the same run gets the same verdict.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use analyses::step::Step;
use rayon::prelude::*;
use serde_json::Value;
use session::report::json::as_json;
use session::{OpenError, Session};

use crate::laws::{causes, list, text};
use crate::profiles::Profile;
use crate::space::{Message, Space};
use crate::transform::{Run, Transformation, transform};
use crate::{Offence, Violation, offences};

/// What came of all transformed profiles.
#[derive(Debug, Default)]
pub struct Outcome {
    pub count: usize,
    /// Profiles that were transformed.
    pub seen: BTreeSet<String>,
    pub offences: Vec<Offence>,
}

/// Whether findings behind the first must be the same, too.
const LATER_FINDINGS_BIND: bool = true;

/// Larger ones take seconds each.
const LARGEST_BYTES: u64 = 400_000;

/// A profile, and what is said of it as it is.
struct Original {
    name: String,
    path: PathBuf,
    healthy: bool,
    run: Run,
    bytes: usize,
    verdict: Verdict,
    /// Laws that its own report breaks: those of transformed ones are no news.
    broken: BTreeSet<&'static str>,
}

/// What must not change.
#[derive(Debug, Clone, PartialEq)]
struct Verdict {
    /// The rule of the first finding.
    first: Option<String>,
    mean_ms: Option<f64>,
    n_steps: u64,
    /// The confidence in them.
    sure_of_steps: f64,
    not_checked: Vec<String>,
    /// Rules and severities of all findings.
    findings: Vec<(String, String)>,
}

impl Verdict {
    fn of(report: &Value) -> Verdict {
        let steps = &report["steps"];
        let first = causes(report).first();
        Verdict {
            first: first.map(|it| text(it, "rule").to_owned()),
            mean_ms: steps["mean_ms"].as_f64(),
            n_steps: steps["count"].as_u64().unwrap_or(0),
            sure_of_steps: steps["confidence"].as_f64().unwrap_or(0.0),
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
    /// Of the profile alone: what was recorded next to it is not transformed, so the verdict must
    /// not rest on it. `None` of runs that are no XSpace, or are too large.
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
        let session = open(&run).ok()?;
        let report = as_json(&session.report());
        let broken = offences(&report, &session, &profile.name, profile.healthy);
        Some(Original {
            name: profile.name.clone(),
            path: profile.path.clone(),
            healthy: profile.healthy,
            run,
            bytes: sizes as usize,
            verdict: Verdict::of(&report),
            broken: broken.into_iter().filter(|it| !it.what.soft).map(|it| it.law).collect(),
        })
    }
}

/// A run, in memory where it is of one file.
fn open(run: &Run) -> Result<Session, OpenError> {
    if let [(name, space)] = &run.files[..] {
        return Session::from_bytes(name, space.encode_to_vec());
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, space) in &run.files {
        std::fs::write(folder.path().join(name), space.encode_to_vec()).unwrap();
    }
    Session::open(folder.path())
}

/// How often each transformation is made: small profiles take little time. `LAWS_TIMES=10` makes
/// ten times as many, for a long look.
fn n_seeds(bytes: usize) -> u64 {
    let times = std::env::var("LAWS_TIMES").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    let seeds: u64 = match bytes {
        ..20_000 => 64,
        20_000..60_000 => 28,
        60_000..120_000 => 14,
        _ => 6,
    };
    seeds * times
}

pub fn run(profiles: &[Profile]) -> Outcome {
    let originals: Vec<Original> = profiles.par_iter().filter_map(Original::read).collect();
    let mut outcome = Outcome::default();
    let mut cases = Vec::new();
    for original in &originals {
        outcome.seen.insert(original.name.clone());
        cases.push((original, Transformation::Rewrite, 0));
        for how in Transformation::ALL {
            cases.extend((0..n_seeds(original.bytes)).map(|seed| (original, how, seed)));
        }
    }
    let checked: Vec<(Transformation, Checked)> = cases
        .into_par_iter()
        .filter_map(|(original, how, seed)| Some((how, check(original, how, seed)?)))
        .collect();
    for how in [Transformation::Rewrite].into_iter().chain(Transformation::ALL) {
        let of: Vec<&Checked> = checked.iter().filter(|it| it.0 == how).map(|it| &it.1).collect();
        let excused = of.iter().filter(|it| it.excused).count();
        eprintln!("laws: {} of {}, {excused} of them say why they differ", of.len(), how.name());
    }
    outcome.count = checked.len();
    outcome.offences = checked.into_iter().flat_map(|it| it.1.offences).collect();
    let copies: Vec<Vec<Offence>> = originals.par_iter().map(check_copy).collect();
    outcome.count += copies.len();
    outcome.offences.extend(copies.into_iter().flatten());
    outcome
}

/// What came of one transformed profile.
#[derive(Debug, Default)]
struct Checked {
    offences: Vec<Offence>,
    /// The verdict is another, and says why.
    excused: bool,
}

/// `None` where there was nothing to transform.
fn check(original: &Original, how: Transformation, seed: u64) -> Option<Checked> {
    let new = transform(&original.run, how, seed)?;
    let offence =
        |what: Violation| Offence { law: how.name(), profile: original.name.clone(), what };
    let session = match open(&new) {
        Ok(session) => session,
        Err(error) => {
            let unread = offence(Violation::hard(format!("cannot be read: {error}")));
            return Some(Checked { offences: vec![unread], excused: false });
        }
    };
    let report = as_json(&session.report());
    let (before, after) = (&original.verdict, Verdict::of(&report));
    let found = match how {
        Transformation::Cut => after_cut(before, &after),
        _ => after_same(before, &after),
    };
    let excused = found.is_empty() && before.first != after.first;
    if excused && std::env::var_os("LAWS_LIST").is_some() {
        let (name, how) = (&original.name, how.name());
        eprintln!("{how}: {name}: {}; before, {} (says why)", after.words(), before.words());
    }
    let mut offences: Vec<Offence> = found.into_iter().map(offence).collect();
    for mut it in crate::offences(&report, &session, &original.name, original.healthy) {
        // Slips are those of the original, and of each that is made of it.
        if !it.what.soft && !original.broken.contains(it.law) {
            it.what.text = format!("after {}: {}", how.name(), it.what.text);
            offences.push(it);
        }
    }
    Some(Checked { offences, excused })
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
        return vec![Violation::binding(text, LATER_FINDINGS_BIND)];
    }
    Vec::new()
}

/// Half of a run says the same, or says why it cannot: that steps are less sure, or not there at
/// all, or that the rule could not be asked. That the finding is gone is no reason.
fn after_cut(before: &Verdict, after: &Verdict) -> Vec<Violation> {
    let less_sure = after.sure_of_steps < before.sure_of_steps || after.n_steps == 0;
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

#[cfg(test)]
mod tests {
    use super::{Original, Verdict, after_cut, after_same, open};
    use crate::profiles::{Profile, repo};

    fn original(name: &str) -> Original {
        let path = repo().join("testdata/synthetic").join(name);
        Original::read(&Profile { name: name.to_owned(), path, healthy: false }).unwrap()
    }

    /// Another run is not taken for the same.
    #[test]
    fn a_changed_run_is_noticed() {
        let original = original("sync_stall");
        let mut slower = original.run.clone();
        for plane in &mut slower.files[0].1.planes {
            for event in plane.lines.iter_mut().flat_map(|it| &mut it.events) {
                event.data = Some(crate::space::Data::OffsetPs(event.offset_ps() * 2));
            }
        }
        let slower = Verdict::of(&session::report::json::as_json(&open(&slower).unwrap().report()));
        assert_eq!(after_same(&original.verdict, &slower).len(), 1, "{slower:?}");
        let mut other = original.verdict.clone();
        other.first = Some("another".to_owned());
        assert_eq!(after_same(&original.verdict, &other).len(), 1);
        assert_eq!(after_cut(&original.verdict, &other).len(), 1);
        other.sure_of_steps -= 0.1;
        assert_eq!(after_cut(&original.verdict, &other).len(), 0, "it says that it is less sure");
    }
}
