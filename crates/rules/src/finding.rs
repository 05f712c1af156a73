//! A problem as the outlets show it: what it costs, how it shows, what to change, what that gives.

use analyses::Tables;
use analyses::code_site::Site;
use trace::{Dur, EventId};

use crate::Verdict;
use crate::change::Change;
use crate::confidence;
use crate::dialect::Advice;
use crate::facts::{Facts, facts};
use analyses::what_if::LimitedBy;

use crate::gain::{Gain, Prediction, bottleneck};

#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// One sentence, with the user's own names.
    pub title: String,
    /// Time of a mean step that the problem takes.
    pub takes: Dur,
    /// Time of a mean step that the best edit saves; where no edit's gain can be told, what the
    /// problem takes.
    pub cost: Dur,
    pub severity: Severity,
    /// The rule itself knows how much it matters, whatever it costs.
    is_severity_given: bool,
    /// How sure, 0 to 1.
    pub confidence: f64,
    /// What the best edit gives, of those of which it can be told.
    pub gain: Option<Gain>,
    pub evidence: Vec<Evidence>,
    /// The most worthwhile first.
    pub fix: Vec<Fix>,
    /// Rules that, where they find something, are this one's cause.
    pub symptom_of: Vec<&'static str>,
    /// What the first sentence says instead of the rule's own words, after "4 ms (40%) …".
    pub headline: Option<&'static str>,
}

impl Finding {
    /// A finding whose severity follows from its cost: the time of a mean step that it takes.
    pub fn new(title: impl Into<String>, cost: Dur, step: Dur) -> Finding {
        Finding {
            title: title.into(),
            takes: cost,
            cost,
            severity: Severity::of(cost, step),
            is_severity_given: false,
            confidence: confidence::SHOWN,
            gain: None,
            evidence: Vec::new(),
            fix: Vec::new(),
            symptom_of: Vec::new(),
            headline: None,
        }
    }

    #[must_use]
    pub fn headline(self, words: &'static str) -> Finding {
        Finding { headline: Some(words), ..self }
    }

    #[must_use]
    pub fn severity(self, severity: Severity) -> Finding {
        Finding { severity, is_severity_given: true, ..self }
    }

    #[must_use]
    pub fn confidence(self, confidence: f64) -> Finding {
        Finding { confidence, ..self }
    }

    #[must_use]
    pub fn evidence(mut self, evidence: Evidence) -> Finding {
        self.evidence.push(evidence);
        self
    }

    #[must_use]
    pub fn fix(mut self, fix: Fix) -> Finding {
        self.fix.push(fix);
        self
    }

    #[must_use]
    pub fn symptom_of(mut self, causes: &[&'static str]) -> Finding {
        self.symptom_of.extend(causes);
        self
    }

    pub fn found(self) -> Verdict {
        Verdict::Found(Box::new(self))
    }

    /// Makes milliseconds and speed-up one figure, and takes back what would be no promise.
    pub(crate) fn settle(&mut self, tables: &Tables) {
        let Some(facts) = facts(tables) else { return };
        if facts.of_one_host < 2 {
            self.confidence = self.confidence.min(OF_ONE_STEP);
        }
        for fix in &mut self.fix {
            fix.settle(&facts, self.takes);
        }
        let best = self.best_fix().and_then(|it| it.gain);
        let Some(gain) = best else { return };
        let saved = gain.saves(facts.step);
        let hardly = saved.0 as f64 <= HARDLY * self.takes.0 as f64;
        if hardly && Severity::of(self.takes, facts.step) == Severity::High {
            // The problem is real, and these edits are not its answer: no figure stands for it.
            for fix in &mut self.fix {
                if let Some(gain) = fix.gain.take() {
                    let limit = fix
                        .then
                        .as_ref()
                        .map(|it| format!("{} would then limit the step", bottleneck(it)));
                    let why =
                        limit.unwrap_or_else(|| format!("it would give at most {:.2}×", gain.high));
                    fix.why = Some(why);
                }
            }
            return;
        }
        self.gain = Some(gain);
        self.cost = saved;
        if !self.is_severity_given {
            self.severity = Severity::of(saved, facts.step);
        }
    }

    /// The edit with the largest gain that can be told.
    pub fn best_fix(&self) -> Option<&Fix> {
        let told = self.fix.iter().filter_map(|it| Some((it, it.gain?)));
        told.max_by(|a, b| a.1.speedup.total_cmp(&b.1.speedup)).map(|it| it.0)
    }
}

/// By so much a comparison of two runs on a host is off, whatever was changed.
/// Source: measured by `bench/trials/measure.py`, processes of one program differ by 3% typically
/// and by up to 8%; a gain compares two of them, so that both may be off.
const RUNS_DIFFER: f64 = 0.10;

/// How sure one step makes: it may be any step.
/// Source: choice, as likely as not.
const OF_ONE_STEP: f64 = 0.5;

/// Edits that save less than this part of what a large problem takes are not its answer.
/// Source: choice, a fifth.
const HARDLY: f64 = 0.2;

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Low,
    Medium,
    High,
}

/// Below this share of the step nothing is said: run-to-run noise on a quiet machine is as large.
/// Source: measured by `bench/trials/measure.py`: processes of one program differ by 3%.
pub const WORTH_SAYING: f64 = 0.03;
/// Below this share the fix often costs more than it saves.
/// Source: document, XProf calls a run input-bound from 10% on.
pub const WORTH_FIXING: f64 = 0.10;
/// A quarter of the step is felt by everybody who waits for the run.
/// Source: choice, an hour of a working morning.
const SEVERE: f64 = 0.25;

impl Severity {
    pub fn of(cost: Dur, step: Dur) -> Severity {
        match cost.0 as f64 / step.0.max(1) as f64 {
            share if share >= SEVERE => Severity::High,
            share if share >= WORTH_FIXING => Severity::Medium,
            _ => Severity::Low,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        }
    }
}

/// Something seen that a person can open: a sentence, rows of a table, events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    pub text: String,
    pub table: Option<&'static str>,
    pub rows: Vec<usize>,
    pub events: Vec<EventId>,
    /// Of rows of `step_time`: the part of the step that is meant.
    pub category: Option<&'static str>,
}

impl Evidence {
    pub fn text(text: impl Into<String>) -> Evidence {
        Evidence { text: text.into(), ..Evidence::default() }
    }

    /// Rows that say so. Without any there is nothing to look at, and so no table.
    #[must_use]
    pub fn rows(self, table: &'static str, rows: Vec<usize>) -> Evidence {
        Evidence { table: (!rows.is_empty()).then_some(table), rows, ..self }
    }

    /// Rows of `step_time`, and which part of those steps is meant.
    #[must_use]
    pub fn steps(self, category: &'static str, rows: Vec<usize>) -> Evidence {
        Evidence { category: Some(category), ..self.rows("step_time", rows) }
    }

    #[must_use]
    pub fn events(self, events: Vec<EventId>) -> Evidence {
        Evidence { events, ..self }
    }
}

/// One change to make, what it gives, and the code to write where it can be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Fix {
    pub change: Change,
    pub text: String,
    /// What the rule advises, until it is said in the words of the run.
    pub(crate) advice: Option<Advice>,
    pub edit: Option<String>,
    /// The user's line that it changes.
    pub site: Option<Site>,
    /// The edit as a diff, where the user's source is at hand and it is certain.
    pub diff: Option<String>,
    /// The new value, where the change is one of a number.
    pub amount: Option<u32>,
    pub gain: Option<Gain>,
    /// Why no gain can be told.
    pub why: Option<String>,
    /// What bounds the step after it.
    pub then: Option<LimitedBy>,
    /// The row of the table `what_if` that the gain rests on, by its `change`.
    pub what_if: Option<String>,
}

/// Why a fix has no gain, where nothing better is known.
const UNTOLD: &str = "this profile does not show what it would save";
/// A single step may be any step: the first, a slow one, one that the profiler disturbed.
const ONE_STEP: &str = "one captured step is not enough for a prediction";

impl Fix {
    /// Advice in words, or with [`Fix::edit`] as code.
    pub fn new(change: Change, text: impl Into<String>) -> Fix {
        let (edit, site, diff, amount, gain, why, then, what_if) =
            (None, None, None, None, None, None, None, None);
        let advice = None;
        Fix {
            change,
            text: text.into(),
            advice,
            edit,
            site,
            diff,
            amount,
            gain,
            why,
            then,
            what_if,
        }
    }

    #[must_use]
    pub fn edit(self, edit: impl Into<Advice>) -> Fix {
        Fix { advice: Some(edit.into()), ..self }
    }

    #[must_use]
    pub fn gives(self, prediction: Option<impl Into<Prediction>>) -> Fix {
        match prediction.map(Into::into) {
            Some(it) => {
                Fix { gain: Some(it.gain.in_order()), then: it.then, what_if: it.change, ..self }
            }
            None => self,
        }
    }

    /// No gain, for this reason.
    #[must_use]
    pub fn untold(self, why: impl Into<String>) -> Fix {
        Fix { why: Some(why.into()), ..self }
    }

    #[must_use]
    pub fn at(self, site: Option<Site>) -> Fix {
        Fix { site, ..self }
    }

    /// The number that the change sets.
    #[must_use]
    pub fn amount(self, amount: u32) -> Fix {
        Fix { amount: Some(amount), ..self }
    }

    fn settle(&mut self, facts: &Facts, takes: Dur) {
        let (n_steps, step) = (facts.of_one_host, facts.step);
        // What a problem takes is the likely most that its edit saves; only the best case counts
        // on more, as where other work is no longer held up.
        if takes > Dur(0)
            && let Some(gain) = &mut self.gain
        {
            let most = step.0 as f64 / (step.0 - takes.0).max(1) as f64;
            gain.speedup = gain.speedup.min(most).max(1.0);
            gain.low = gain.low.min(gain.speedup);
            *gain = gain.in_order();
        }
        // A device keeps its pace; shared cores do not.
        if let Some(gain) = self.gain.as_mut().filter(|it| !facts.on_device && it.high > 1.0) {
            gain.low /= 1.0 + RUNS_DIFFER;
            gain.high *= 1.0 + RUNS_DIFFER;
            *gain = gain.in_order();
        }
        if n_steps < 2 {
            self.gain = None;
            self.why = Some(ONE_STEP.to_owned());
        } else if let Some(gain) = self.gain.filter(|it| !it.is_promise()) {
            self.gain = None;
            let [low, high] = [gain.low, gain.high];
            self.why = Some(format!("the profile only bounds it: from {low:.1}× to {high:.0}×"));
        }
        if self.gain.is_none() && self.why.is_none() {
            self.why = Some(UNTOLD.to_owned());
        }
    }
}
