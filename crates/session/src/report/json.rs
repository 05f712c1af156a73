//! The report as JSON, in the shape that scripts and the page rely on.
//!
//! What is not known is `null`; what a run cannot have at all is left out. The page's types
//! (`web/src/data/answers.ts`) are made of these, their comments included.

use serde::Serialize;
use serde_json::Value;
use trace::Dur;

use super::words::{figures_in_words, gain_in_words, headline};
use crate::value::of_json;

/// One of the ten categories of a step.
pub type Category = &'static str;

/// How much a finding matters.
pub type Severity = &'static str;

/// The verdict on a run.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    pub schema: u32,
    pub run: Run<'a>,
    /// The first sentence: where the time goes, and why.
    pub headline: String,
    /// What holds the largest part of the largest category, where it can be told.
    pub culprit: Option<Culprit<'a>>,
    pub steps: Steps<'a>,
    /// Categories of the mean step.
    pub breakdown: Vec<Share>,
    /// Categories that this profile cannot tell.
    pub breakdown_unknown: Vec<UnknownCategory>,
    /// The ops with the largest self time, of the devices where there are any.
    pub top_ops: Vec<TopOp<'a>>,
    /// The most costly first.
    pub findings: Vec<Finding<'a>>,
    /// The order of edits worth making.
    pub plan: Vec<PlanStep>,
    /// What no advised edit can pass.
    pub floor_ms: Option<f64>,
    pub not_checked: Vec<NotChecked<'a>>,
    pub beside: Beside<'a>,
    pub notes: Vec<Note<'a>>,
}

/// What was profiled.
#[derive(Debug, Serialize)]
pub struct Run<'a> {
    pub path: &'a str,
    pub name: &'a str,
    pub frameworks: &'a [&'static str],
    pub hosts: &'a [String],
    /// What was profiled, in words.
    pub facts: Vec<String>,
    /// What of a run there is: a timeline, steps, samples and so on.
    pub has: Vec<&'static str>,
    /// Those on which anything was seen to run.
    pub devices: Vec<Device<'a>>,
    pub window_ms: f64,
    pub events: usize,
    /// Points of the training log.
    pub scalars: usize,
}

#[derive(Debug, Serialize)]
pub struct Device<'a> {
    pub name: &'a str,
    pub kind: &'static str,
    pub host: &'a str,
}

/// An op, stage or call to blame for a category's time.
#[derive(Debug, Serialize)]
pub struct Culprit<'a> {
    pub name: &'a str,
    /// Of all that could be blamed.
    pub share: f64,
}

/// The steps. Without any, `count` is 0, `found_by` is `none`, and nothing else is known.
#[derive(Debug, Default, Serialize)]
pub struct Steps<'a> {
    /// Steps that statistics rest on, on the host that has most.
    pub count: usize,
    /// `markers`, `calls`, `period` or `none`.
    pub found_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<&'a str>,
    pub confidence: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_skipped: Option<usize>,
    /// Cut off by the end of the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<f64>,
    /// Of a sample; null for a single step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdev_ms: Option<Option<f64>>,
    /// How fast the job itself says that it trains, where its log tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace_ms: Option<Option<f64>>,
}

/// A category's part of the step.
#[derive(Debug, Serialize)]
pub struct Share {
    pub category: Category,
    pub ms_per_step: f64,
    pub share: f64,
}

#[derive(Debug, Serialize)]
pub struct UnknownCategory {
    pub category: Category,
    pub why: &'static str,
}

/// An op that stands out.
#[derive(Debug, Serialize)]
pub struct TopOp<'a> {
    pub name: &'a str,
    #[serde(rename = "type")]
    pub op_type: Option<&'a str>,
    pub side: &'static str,
    pub count: i64,
    pub self_ms: f64,
    /// Of all ops' self time on its side.
    pub share: f64,
}

/// A problem: what it costs, how it shows, what to change, what that gives.
#[derive(Debug, Serialize)]
pub struct Finding<'a> {
    pub rule: &'a str,
    pub severity: Severity,
    /// One sentence, with the user's own names.
    pub title: &'a str,
    /// Time of a mean step that the problem takes.
    pub takes_ms_per_step: f64,
    /// What the best edit saves; where no edit's gain can be told, what the problem takes.
    pub cost_ms_per_step: f64,
    /// The figures in words, as the terminal prints them.
    pub gain: String,
    pub speedup_if_fixed: Option<f64>,
    pub speedup_low: Option<f64>,
    pub speedup_high: Option<f64>,
    pub step_after_ms: Option<StepAfter>,
    /// How sure, 0 to 1.
    pub confidence: f64,
    pub evidence: Vec<Evidence<'a>>,
    /// The most worthwhile first.
    pub fix: Vec<Fix<'a>>,
    /// Findings that follow from this one, which have none themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symptoms: Option<Vec<Finding<'a>>>,
}

/// Something seen that a person can open.
#[derive(Debug, Serialize)]
pub struct Evidence<'a> {
    pub text: &'a str,
    pub table: Option<&'static str>,
    /// Of that table.
    pub rows: &'a [usize],
    pub events: Vec<u32>,
}

/// An edit, and what it gives.
#[derive(Debug, Serialize)]
pub struct Fix<'a> {
    /// What is changed, by a stable name.
    pub change: &'static str,
    pub text: &'a str,
    /// The code to write.
    pub edit: Option<&'a str>,
    /// The same as a diff of the user's file, where that is certain.
    pub diff: Option<&'a str>,
    #[serde(rename = "where")]
    pub place: Option<Place<'a>>,
    /// The figures in words.
    pub gain: Option<String>,
    pub speedup_if_fixed: Option<f64>,
    pub speedup_low: Option<f64>,
    pub speedup_high: Option<f64>,
    /// The row of the table `what_if` that the gain rests on, by its `change`.
    pub what_if: Option<&'a str>,
    pub step_after_ms: Option<StepAfter>,
    /// What limits the step after that.
    pub then_limited_by: Option<&'a str>,
    /// Why no gain can be told.
    pub why: Option<&'a str>,
}

/// A line of the user's code.
#[derive(Debug, Serialize)]
pub struct Place<'a> {
    pub file: &'a str,
    pub line: i64,
}

/// A predicted step time, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct StepAfter {
    pub low: f64,
    pub likely: f64,
    pub high: f64,
}

/// One edit of the plan. Speed-ups count from today's step.
#[derive(Debug, Serialize)]
pub struct PlanStep {
    pub rule: &'static str,
    /// Which of the finding's.
    pub fix: usize,
    pub step_after_ms: f64,
    /// In milliseconds, with this edit and all before it.
    pub step_after: StepAfter,
    pub speedup_low: f64,
    pub speedup_if_fixed: f64,
    pub speedup_high: f64,
}

/// A rule that could not be asked.
#[derive(Debug, Serialize)]
pub struct NotChecked<'a> {
    pub rule: &'static str,
    pub why: &'a str,
}

/// What was recorded beside the profile.
#[derive(Debug, Serialize)]
pub struct Beside<'a> {
    /// Steps of the whole run, as its processes timed them.
    pub steps: Option<RunSteps<'a>>,
    /// Where Python was, most often first.
    pub python_lines: Vec<CodeLine<'a>>,
    /// Empty where there is a profile.
    pub machine: Vec<MachineUse<'a>>,
}

#[derive(Debug, Serialize)]
pub struct RunSteps<'a> {
    /// What counted as a step.
    pub name: Option<&'a str>,
    /// Of all processes.
    pub count: i64,
    pub processes: usize,
    /// Those that the median and p95 are of.
    pub steady: u64,
    pub median_ms: f64,
    pub p95_ms: f64,
}

/// A line of Python, of those that train or make input.
#[derive(Debug, Serialize)]
pub struct CodeLine<'a> {
    pub activity: &'a str,
    pub function: &'a str,
    pub file: &'a str,
    pub line: Option<i64>,
    /// The library's function that it was in, where it was in one.
    pub inside: Option<&'a str>,
    pub samples: i64,
    /// Of the samples of its activity.
    pub share: f64,
}

/// What the run took of a host, where that was sampled.
#[derive(Debug, Serialize)]
pub struct MachineUse<'a> {
    pub host: &'a str,
    /// Cores that its processes kept busy, on average.
    pub cores_used: Option<f64>,
    /// The most that its processes held.
    pub memory_peak_bytes: Option<f64>,
    pub gpus: Vec<GpuUse<'a>>,
}

#[derive(Debug, Serialize)]
pub struct GpuUse<'a> {
    pub name: &'a str,
    /// Share of the time that it was busy.
    pub busy_share: f64,
}

/// Something skipped or guessed while reading.
#[derive(Debug, Serialize)]
pub struct Note<'a> {
    pub kind: &'static str,
    pub count: u64,
    pub first: &'a str,
}

/// What `strobe report --format json` prints.
pub fn as_json(report: &super::Report) -> Value {
    of_json(&Report::of(report))
}

impl<'a> Report<'a> {
    pub fn of(report: &'a super::Report) -> Report<'a> {
        let diagnosis = &report.diagnosis;
        Report {
            schema: 1,
            run: Run::of(report),
            headline: headline(report),
            culprit: report
                .main_culprit
                .as_ref()
                .map(|it| Culprit { name: &it.name, share: it.share }),
            steps: Steps::of(report),
            breakdown: report.breakdown.iter().map(Share::of).collect(),
            breakdown_unknown: report
                .unknown
                .iter()
                .map(|&(category, why)| UnknownCategory { category, why })
                .collect(),
            top_ops: report.top_ops.iter().map(TopOp::of).collect(),
            findings: findings(report),
            plan: plan(report),
            floor_ms: diagnosis.plan.floor.map(ms),
            not_checked: diagnosis
                .not_checked
                .iter()
                .map(|(rule, why)| NotChecked { rule, why })
                .collect(),
            beside: Beside::of(&report.beside),
            notes: report.notes.iter().map(Note::of).collect(),
        }
    }
}

impl<'a> Run<'a> {
    fn of(report: &'a super::Report) -> Run<'a> {
        let run = &report.run;
        let device = |it: &'a analyses::run_info::Device| Device {
            name: &it.name,
            kind: it.kind,
            host: &it.host,
        };
        Run {
            path: &run.path,
            name: &run.name,
            frameworks: &run.frameworks,
            hosts: &run.hosts,
            facts: super::facts(report),
            has: run.parts.iter().map(|it| it.name()).collect(),
            devices: run.devices.iter().map(device).collect(),
            window_ms: ms(run.window),
            events: run.events,
            scalars: run.scalars,
        }
    }
}

impl<'a> Steps<'a> {
    fn of(report: &'a super::Report) -> Steps<'a> {
        let Some(it) = &report.steps else {
            return Steps { found_by: "none", ..Steps::default() };
        };
        Steps {
            count: it.count,
            found_by: it.found_by,
            marker: Some(&it.marker),
            confidence: it.confidence,
            warmup_skipped: Some(it.warmup_skipped),
            partial: Some(it.partial),
            mean_ms: Some(ms(it.mean)),
            median_ms: Some(ms(it.median)),
            p95_ms: Some(ms(it.p95)),
            stdev_ms: Some(it.stdev.map(ms)),
            pace_ms: Some(report.pace.as_ref().map(|it| ms(it.step))),
        }
    }
}

impl Share {
    pub fn of(it: &super::Share) -> Share {
        Share { category: it.category, ms_per_step: ms(it.per_step), share: it.share }
    }
}

impl<'a> TopOp<'a> {
    fn of(it: &'a super::TopOp) -> TopOp<'a> {
        TopOp {
            name: &it.name,
            op_type: it.op_type.as_deref(),
            side: it.side,
            count: it.count,
            self_ms: ms(it.own),
            share: it.share,
        }
    }
}

fn findings(report: &super::Report) -> Vec<Finding<'_>> {
    let step = report.steps.as_ref().map(|it| it.mean);
    report
        .diagnosis
        .causes
        .iter()
        .map(|cause| {
            let symptoms = cause.symptoms.iter().map(|it| Finding::of(it.0, &it.1, step));
            let symptoms = Some(symptoms.collect());
            Finding { symptoms, ..Finding::of(cause.rule, &cause.finding, step) }
        })
        .collect()
}

impl<'a> Finding<'a> {
    fn of(rule: &'a str, it: &'a rules::Finding, step: Option<Dur>) -> Finding<'a> {
        Finding {
            rule,
            severity: it.severity.name(),
            title: &it.title,
            takes_ms_per_step: ms(it.takes),
            cost_ms_per_step: ms(it.cost),
            gain: figures_in_words(step, it),
            speedup_if_fixed: it.gain.map(|it| it.speedup),
            speedup_low: it.gain.map(|it| it.low),
            speedup_high: it.gain.map(|it| it.high),
            step_after_ms: step_after(step, it.gain),
            confidence: it.confidence,
            evidence: it.evidence.iter().map(Evidence::of).collect(),
            fix: it.fix.iter().map(|it| Fix::of(it, step)).collect(),
            symptoms: None,
        }
    }
}

impl<'a> Evidence<'a> {
    fn of(it: &'a rules::Evidence) -> Evidence<'a> {
        let events = it.events.iter().map(|it| it.0).collect();
        Evidence { text: &it.text, table: it.table, rows: &it.rows, events }
    }
}

impl<'a> Fix<'a> {
    fn of(it: &'a rules::Fix, step: Option<Dur>) -> Fix<'a> {
        Fix {
            change: it.change.name(),
            text: &it.text,
            edit: it.edit.as_deref(),
            diff: it.diff.as_deref(),
            place: it.site.as_ref().map(|it| Place { file: &it.file, line: it.line }),
            gain: step.zip(it.gain).map(|(step, gain)| gain_in_words(step, &gain)),
            speedup_if_fixed: it.gain.map(|it| it.speedup),
            speedup_low: it.gain.map(|it| it.low),
            speedup_high: it.gain.map(|it| it.high),
            what_if: it.what_if.as_deref(),
            step_after_ms: step_after(step, it.gain),
            then_limited_by: it.then.as_ref().map(|it| it.name()),
            why: it.why.as_deref(),
        }
    }
}

fn step_after(step: Option<Dur>, gain: Option<rules::Gain>) -> Option<StepAfter> {
    step.zip(gain).map(|(step, gain)| StepAfter::of(gain.step_after(step)))
}

impl StepAfter {
    fn of(it: rules::StepAfter) -> StepAfter {
        StepAfter { low: ms(it.low), likely: ms(it.likely), high: ms(it.high) }
    }
}

fn plan(report: &super::Report) -> Vec<PlanStep> {
    let step = report.steps.as_ref().map_or(0.0, |it| ms(it.mean));
    let entry = |it: &rules::PlanStep| {
        let speedup = |after: Dur| step / ms(after).max(f64::MIN_POSITIVE);
        PlanStep {
            rule: report.diagnosis.causes[it.cause].rule,
            fix: it.fix,
            step_after_ms: ms(it.after.likely),
            step_after: StepAfter::of(it.after),
            speedup_low: speedup(it.after.high),
            speedup_if_fixed: speedup(it.after.likely),
            speedup_high: speedup(it.after.low),
        }
    };
    report.diagnosis.plan.steps.iter().map(entry).collect()
}

impl<'a> Beside<'a> {
    fn of(it: &'a super::Beside) -> Beside<'a> {
        Beside {
            steps: it.steps.as_ref().map(RunSteps::of),
            python_lines: it.lines.iter().map(CodeLine::of).collect(),
            machine: it.machine.iter().map(MachineUse::of).collect(),
        }
    }
}

impl<'a> RunSteps<'a> {
    fn of(it: &'a super::beside::RunSteps) -> RunSteps<'a> {
        RunSteps {
            name: it.name.as_deref(),
            count: it.count,
            processes: it.processes,
            steady: it.steady,
            median_ms: ms(it.median),
            p95_ms: ms(it.p95),
        }
    }
}

impl<'a> CodeLine<'a> {
    fn of(it: &'a super::beside::CodeLine) -> CodeLine<'a> {
        CodeLine {
            activity: &it.activity,
            function: &it.function,
            file: &it.file,
            line: it.line,
            inside: it.inside.as_deref(),
            samples: it.samples,
            share: it.share,
        }
    }
}

impl<'a> MachineUse<'a> {
    fn of(it: &'a super::beside::MachineUse) -> MachineUse<'a> {
        let gpu = |(name, busy_share): &'a (String, f64)| GpuUse { name, busy_share: *busy_share };
        MachineUse {
            host: &it.host,
            cores_used: it.cores_used,
            memory_peak_bytes: it.memory_peak_bytes,
            gpus: it.gpus_busy.iter().map(gpu).collect(),
        }
    }
}

impl<'a> Note<'a> {
    fn of(it: &'a trace::Note) -> Note<'a> {
        Note { kind: it.kind.name(), count: it.count, first: &it.first }
    }
}

pub fn ms(dur: Dur) -> f64 {
    dur.0 as f64 / 1e9
}
