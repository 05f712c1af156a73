//! Laws that every report obeys, whatever profile it is of.
//!
//! ```text
//! all profiles ──▶ report ──▶ each law ──▶ violations, all at once
//!      └── transformed, thousands of times ──▶ report ──▶ the same first finding
//! ```
//!
//! `LAWS_LIST=1` lists all violations, also those that only count; `LAWS_TIMES=10` transforms ten
//! times as many profiles.
//!
//! A violation that is known stands in [`KNOWN`], and must go on failing: who repairs it removes
//! the entry.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failed helper is a failed test, and says what it looked at"
)]

mod known;
mod laws;
mod profiles;
mod sentences;
mod space;
mod transform;
mod transformed;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rayon::prelude::*;
use serde_json::Value;
use session::Session;
use session::report::json::as_json;

use known::KNOWN;
use profiles::Profile;
use synth::Shape;

/// Whether reports have `step_after_ms`, gains of edits, `plan` and `floor_ms`; until then laws
/// about them are not asked.
pub const NEW_SHAPE: bool = true;
/// Whether slips of wording fail the test, or are counted only.
pub const WORDS_BIND: bool = true;

/// Whether a first sentence that does not name the first finding fails the test.
pub const HEADLINE_BINDS: bool = false;

/// Something a report says that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub text: String,
    /// Counted, and no failure.
    pub soft: bool,
}

impl Violation {
    pub fn hard(text: impl Into<String>) -> Violation {
        Violation { text: text.into(), soft: false }
    }

    /// One that fails the test only where its switch is on.
    pub fn binding(text: impl Into<String>, binds: bool) -> Violation {
        Violation { text: text.into(), soft: !binds }
    }
}

/// What all reports, or those of healthy runs, must obey.
#[derive(Debug, Clone, Copy)]
pub struct Law {
    pub name: &'static str,
    pub of_healthy: bool,
    pub check: fn(&Value, &Session) -> Vec<Violation>,
}

/// A violation, and where it was met.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offence {
    pub law: &'static str,
    pub profile: String,
    pub what: Violation,
}

impl fmt::Display for Offence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let soft = if self.what.soft { " (soft)" } else { "" };
        write!(out, "{}: {}: {}{soft}", self.law, self.profile, self.what.text)
    }
}

pub fn offences(report: &Value, session: &Session, name: &str, healthy: bool) -> Vec<Offence> {
    let asked = laws::ALL.iter().filter(|it| healthy || !it.of_healthy);
    asked
        .flat_map(|law| {
            let found = (law.check)(report, session);
            found.into_iter().map(|what| Offence { law: law.name, profile: name.to_owned(), what })
        })
        .collect()
}

/// Reports of all profiles, and what is wrong with them.
fn of_profiles(profiles: &[Profile]) -> (BTreeSet<String>, Vec<Offence>) {
    let looked_at = |name: &str, healthy: bool, session: &Session| {
        let report = as_json(&session.report());
        (name.to_owned(), offences(&report, session, name, healthy))
    };
    let mut reports: Vec<(String, Vec<Offence>)> = profiles
        .par_iter()
        .filter_map(|it| Some(looked_at(&it.name, it.healthy, &it.open()?)))
        .collect();
    for (name, shape) in
        [("gpu", Shape::Gpu), ("tf-ops", Shape::TfOps), ("one-line", Shape::OneLine)]
    {
        let mut bytes = Vec::new();
        synth::write_big(&mut bytes, shape, 20_000).unwrap();
        let session = Session::from_bytes("big.xplane.pb", bytes).unwrap();
        reports.push(looked_at(&format!("big/{name}"), false, &session));
    }
    let names = reports.iter().map(|it| it.0.clone()).collect();
    (names, reports.into_iter().flat_map(|it| it.1).collect())
}

/// What fails and is not known to, and what is known to fail and does not.
fn surprises(seen: &BTreeSet<String>, offences: &[Offence]) -> Vec<String> {
    let is_known = |it: &Offence| KNOWN.contains(&(it.law, it.profile.as_str()));
    let mut surprises: Vec<String> = offences
        .iter()
        .filter(|it| !it.what.soft && !is_known(it))
        .map(Offence::to_string)
        .collect();
    for (law, profile) in KNOWN.iter().filter(|it| seen.contains(it.1)) {
        let fails =
            offences.iter().any(|it| it.law == *law && it.profile == *profile && !it.what.soft);
        if !fails {
            surprises.push(format!("{law}: {profile}: holds now, remove it from KNOWN"));
        }
    }
    surprises
}

#[test]
fn every_report_obeys_the_laws() {
    let (profiles, missing) = profiles::all();
    for folder in missing {
        eprintln!("laws: skipped {folder}: it is not beside this repository");
    }
    let (mut seen, mut offences) = of_profiles(&profiles);
    let n_reports = seen.len();
    let transformed = transformed::run(&profiles);
    offences.extend(transformed.offences);
    seen.extend(transformed.seen);
    offences.sort();
    offences.dedup();
    if std::env::var_os("LAWS_LIST").is_some() {
        offences.iter().for_each(|it| eprintln!("{it}"));
    }
    let mut soft: BTreeMap<&str, usize> = BTreeMap::new();
    for it in offences.iter().filter(|it| it.what.soft) {
        *soft.entry(it.law).or_default() += 1;
    }
    eprintln!("laws: counted only: {soft:?}");
    let n_soft = offences.iter().filter(|it| it.what.soft).count();
    eprintln!(
        "laws: {n_reports} reports, {} transformed profiles, {n_soft} soft violations",
        transformed.count
    );
    assert!(n_reports >= 40, "only {n_reports} reports");
    assert!(transformed.count >= 5000, "only {} transformed profiles", transformed.count);
    let surprises = surprises(&seen, &offences);
    assert!(surprises.is_empty(), "{} violations:\n{}", surprises.len(), surprises.join("\n"));
}
