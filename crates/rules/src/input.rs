//! Whom to blame for waiting input: one answer, which every rule about input shares.
//!
//! ```text
//! who limits the pipeline?   consumer's own thread | a background thread | a pool | all cores
//! what does it mostly do?    Python | read files | map | anything else
//! ```

use std::sync::Arc;

use analyses::Tables;
use analyses::code_site::site_of_stage;
use analyses::input_stage::pipeline::{CrewOf, Pipeline, Stage};
use analyses::step_time::StepTime;
use analyses::what_if::Altered;
use trace::Dur;

use crate::change::Change;
use crate::dialect::Edit;
use crate::facts::{Facts, NO_STEPS, facts};
use crate::{Evidence, Finding, Fix, Prediction, Verdict, WORTH_FIXING, WORTH_SAYING};

/// Time that steps wait for input, and what makes them wait.
pub struct Input {
    pub facts: Facts,
    pub pipeline: Arc<Pipeline>,
    /// What they would wait beyond that once nothing else of the host's held them.
    hidden: Dur,
    /// What the training thread waits for the interpreter lock that Python in the pipeline holds.
    locked: Dur,
    pub cause: Cause,
}

/// The stage is a row of `input_stage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Python(usize),
    SmallFiles(usize),
    FileRead(usize),
    SerialMap(usize),
    CpuStarved(usize),
    NoPrefetch(usize),
    Stage(usize),
    /// The pipeline left no events.
    Unseen,
}

/// The rules that say it more sharply than `input-bound`.
pub const SHARPER: [&str; 6] = [
    "input-python",
    "input-serial-map",
    "input-no-prefetch",
    "input-file-read",
    "input-small-files",
    "input-cpu-starved",
];

/// Opening a file costs as much as reading some tens of records from one that is open.
/// Source: physical, 50 to 100 µs for opening and 2 µs for a small record.
const FEW_RECORDS: f64 = 32.0;

/// The last call of a file only finds its end.
/// Source: physical, tf.data asks once more to learn that a file is over.
const HARDLY_ANY: f64 = 4.0;
/// A record that takes longer is a large one, whatever file it lies in.
/// Source: physical, 1 MB at 5 GB/s.
const SHORT_PS: f64 = 200e6;

/// A stage with half of the limiting threads' work is the one to change first.
/// Source: physical, nothing else can be more.
const MOSTLY: f64 = 0.5;

/// Prefetch alone is the answer where it gives nearly all that more would.
/// Source: choice, the error that predictions are allowed.
const NEARLY_ALL: f64 = 1.1;

/// What input costs and why; or a verdict for those that need not look further.
pub fn input(tables: &Tables) -> Result<Input, Verdict> {
    let Some(facts) = facts(tables) else {
        return Err(Verdict::unknown(NO_STEPS));
    };
    let pipeline = tables.model::<Pipeline>();
    let hidden = hidden(&facts, &pipeline);
    let cause = blame(&pipeline);
    let locked = locked(&pipeline, cause);
    let cost = facts.of("input") + hidden + locked;
    if facts.share_of(cost) < WORTH_SAYING {
        return Err(Verdict::Clear);
    }
    Ok(Input { facts, pipeline, hidden, locked, cause })
}

/// Whether Python in the input pipeline holds the training thread up by its lock.
pub fn holds_the_lock(tables: &Tables) -> bool {
    input(tables).is_ok_and(|it| it.facts.share_of(it.locked) >= WORTH_FIXING)
}

/// Python that runs beside the training thread keeps it from running its own.
fn locked(pipeline: &Pipeline, cause: Cause) -> Dur {
    let Cause::Python(stage) = cause else { return Dur(0) };
    let crew = &pipeline.crews[pipeline.stages[stage].works_in];
    match crew.of {
        CrewOf::Consumer => Dur(0),
        _ => Dur((pipeline.rest_ps - pipeline.without_python(stage).rest_ps).max(0)),
    }
}

/// What a sharper rule says: its finding of the stage, where the blame is its kind.
pub fn blamed(
    tables: &Tables,
    is_ours: fn(Cause) -> bool,
    finding: impl FnOnce(&Input, &Stage) -> Finding,
) -> Verdict {
    match input(tables) {
        Err(verdict) => verdict,
        Ok(it) => match (it.cause, it.stage()) {
            (Cause::Unseen, _) => Verdict::unknown(UNSEEN),
            (cause, Some(stage)) if is_ours(cause) => finding(&it, stage).found(),
            _ => Verdict::Clear,
        },
    }
}

/// Waiting that does not show because Python, saving or compiling holds the step meanwhile: what
/// the pipeline needs beyond all that cannot be taken away.
fn hidden(facts: &Facts, pipeline: &Pipeline) -> Dur {
    if pipeline.stages.is_empty() {
        return Dur(0);
    }
    let removable = (facts.of("python") + facts.of("output") + facts.of("compile")).0;
    let stays = pipeline.rest_ps - removable;
    let ahead = pipeline.crews.iter().filter(|it| it.of != CrewOf::Consumer);
    let needs = ahead.map(|it| it.period_ps()).max().unwrap_or(0);
    Dur((needs.min(pipeline.rest_ps) - stays).clamp(0, removable.max(0)))
}

/// From here on a stage makes several elements a step.
/// Source: physical, 1.5 is written as 2.
const SEVERAL: f64 = 1.5;
/// An op is named that takes more than one part in so many of a stage's work.
/// Source: choice, a guess: a third.
const PART_OF_STAGE: i64 = 3;

/// Why a sharper rule cannot be asked although there is waiting.
const UNSEEN: &str = "this profile does not show the stages of the input pipeline";

fn blame(pipeline: &Pipeline) -> Cause {
    let Some(limit) = limiting_crew(pipeline) else {
        return Cause::Unseen;
    };
    let crew = &pipeline.crews[limit];
    let members: Vec<usize> =
        (0..pipeline.stages.len()).filter(|&it| pipeline.stages[it].works_in == limit).collect();
    let Some(heaviest) = pipeline.heaviest_in(limit) else {
        return Cause::Unseen;
    };
    let work_of =
        |stages: &[usize]| stages.iter().map(|&it| pipeline.stages[it].work_ps).sum::<i64>();
    let mostly = |part: i64| part as f64 >= MOSTLY * crew.work_ps as f64;

    let in_python = members.iter().copied().max_by_key(|&it| pipeline.stages[it].in_python_ps());
    if let Some(stage) = in_python.filter(|&it| mostly(pipeline.stages[it].in_python_ps())) {
        return Cause::Python(stage);
    }
    let cores = pipeline.cores.unwrap_or(2);
    let stage = &pipeline.stages[heaviest];
    if crew.of == CrewOf::Consumer {
        let ahead = pipeline.with_prefetch();
        let best = ahead.with_parallel(heaviest, cores).predict();
        if ahead.predict() as f64 <= best as f64 * NEARLY_ALL {
            return Cause::NoPrefetch(heaviest);
        }
    }
    if let Some(reader) = members.iter().copied().find(|&it| pipeline.stages[it].reads_files()) {
        // What opens files, and all below: each file is an iterator of its own.
        let opens = |it: &usize| {
            let (stage, reader) = (&pipeline.stages[*it], &pipeline.stages[reader]);
            reader.path.starts_with(&stage.path)
                && ["FlatMap", "Interleave", "ParallelInterleave"].contains(&stage.plain_kind())
                || stage.path.starts_with(&reader.path)
        };
        let reading: Vec<usize> = members.iter().copied().filter(opens).collect();
        if mostly(work_of(&reading)) {
            let stage = &pipeline.stages[reader];
            let per_file = stage.calls as f64 / stage.iterators.max(1) as f64;
            let per_step = stage.calls as f64 / pipeline.n_steps.max(1) as f64;
            let is_short = (stage.work_ps as f64) < per_step * SHORT_PS;
            return match per_file < HARDLY_ANY || per_file < FEW_RECORDS && is_short {
                true => Cause::SmallFiles(reader),
                false => Cause::FileRead(reader),
            };
        }
    }
    // A map that reads whole files opens one for each element.
    let reads = |it: &&usize| {
        let stage = &pipeline.stages[**it];
        stage.top_op.as_ref().is_some_and(|op| op.0 == "ReadFile") && mostly(stage.work_ps)
    };
    if let Some(&reader) = members.iter().find(reads) {
        return Cause::SmallFiles(reader);
    }
    let maps = stage.plain_kind().contains("Map") && stage.plain_kind() != "FlatMap";
    let serial = match crew.of {
        CrewOf::Pool(_) => crew.parallel < cores && stage.autotune != Some(true),
        _ => !stage.is_asynchronous(),
    };
    if maps && serial && mostly(stage.work_ps) {
        return Cause::SerialMap(heaviest);
    }
    if matches!(crew.of, CrewOf::Pool(_)) {
        return Cause::CpuStarved(heaviest);
    }
    Cause::Stage(heaviest)
}

/// Who holds the step: the consumer's own work where nothing fetches ahead, else the slowest.
fn limiting_crew(pipeline: &Pipeline) -> Option<usize> {
    let consumer = pipeline.crews.iter().position(|it| it.of == CrewOf::Consumer);
    let limit = pipeline.limit()?;
    let inline = pipeline.rest_ps + pipeline.consumer_ps();
    // What the consumer does itself must also be what it waits for.
    let explains = pipeline.consumer_ps() * 2 >= pipeline.step_ps - pipeline.rest_ps;
    let others = |it: &usize| pipeline.crews[*it].of != CrewOf::Consumer;
    match consumer {
        Some(it) if explains && inline > pipeline.crews[limit].period_ps() => Some(it),
        Some(_) if !explains => (0..pipeline.crews.len())
            .filter(others)
            .max_by_key(|&it| pipeline.crews[it].period_ps()),
        _ => Some(limit),
    }
}

impl Input {
    pub fn stage(&self) -> Option<&Stage> {
        let at = match self.cause {
            Cause::Python(it)
            | Cause::SmallFiles(it)
            | Cause::FileRead(it)
            | Cause::SerialMap(it)
            | Cause::CpuStarved(it)
            | Cause::NoPrefetch(it)
            | Cause::Stage(it) => it,
            Cause::Unseen => return None,
        };
        self.pipeline.stages.get(at)
    }

    /// A finding of what input costs, with what was seen of the stage to blame.
    pub fn finding(&self, tables: &Tables, title: String) -> Finding {
        // What other causes hide is no time of its own: it shows once they are gone.
        let wait = self.facts.of("input") + self.locked;
        let mut finding = Finding::new(title, wait, self.facts.step).evidence(self.waiting(tables));
        if self.is_locked() {
            finding = finding.headline("is spent waiting for input and for Python's lock");
        }
        match self.stage() {
            Some(stage) => finding.evidence(self.about(stage)),
            None => finding,
        }
    }

    /// Whether the lock is part of what a reader adds up.
    fn is_locked(&self) -> bool {
        self.facts.share_of(self.locked) >= WORTH_SAYING
    }

    /// How the wait shows.
    pub fn waiting(&self, tables: &Tables) -> Evidence {
        let wait = self.facts.of("input");
        let steps = tables.get::<StepTime>();
        let waits = || steps.iter().filter(|it| it.counts).map(|it| Dur(it.input_ps));
        let mut text = match (waits().min(), waits().max()) {
            (Some(Dur(0)), Some(most)) if most.0 > 0 => {
                format!("Steps wait up to {most} for their batch, {wait} on average")
            }
            (Some(least), Some(most)) if least.to_string() != most.to_string() => {
                format!("Steps wait {least} to {most} for their batch, {wait} on average")
            }
            _ => format!("Each step waits {wait} for its batch"),
        };
        if self.hidden > wait {
            text += &format!("; {} more is hidden behind Python and saving", self.hidden);
        }
        if self.is_locked() {
            text += &format!("; about {} more goes to waiting for Python's lock", self.locked);
        }
        Evidence::text(text).steps("input", Facts::rows(tables))
    }

    fn about(&self, stage: &Stage) -> Evidence {
        let row = self.pipeline.stages.iter().position(|it| it.path == stage.path);
        let mut text =
            format!("{} needs {} of CPU per step", stage_path(stage), Dur(stage.work_ps));
        let per_step = stage.calls as f64 / self.pipeline.n_steps.max(1) as f64;
        if per_step >= SEVERAL {
            let each = Dur((stage.work_ps as f64 / per_step) as i64);
            text += &format!(" ({per_step:.0} elements, {each} each)");
        }
        match stage.parallelism {
            Some(1) => text += " and handles one element at a time",
            Some(n) => text += &format!(" and handles {n} elements at a time"),
            None => (),
        }
        if let Some((op, time)) =
            stage.top_op.as_ref().filter(|it| it.1 * PART_OF_STAGE > stage.work_ps)
        {
            text += &format!("; its slowest op, {op}, takes {}", Dur(*time));
        }
        text += match self.pipeline.fetches_ahead() {
            true => ". Batches are prefetched",
            false => ". Nothing is prefetched",
        };
        Evidence::text(text)
            .rows("input_stage", row.into_iter().collect())
            .events(stage.events.clone())
    }
}

/// ``ds.map(augment)` (train.py:42)` where the user's line is known; else where the stage stands,
/// as in `The input stage BatchV2 ▸ Map`.
pub fn named(tables: &Tables, stage: &Stage) -> String {
    if let Some(site) = site_of_stage(tables, stage) {
        return format!("`{}` ({})", site.call(), site.place());
    }
    stage_path(stage)
}

/// Where a stage stands in the pipeline.
fn stage_path(stage: &Stage) -> String {
    let path = stage.path.trim_start_matches("Iterator::").trim_start_matches("Root::");
    format!("The input stage {}", path.replace("::", " ▸ "))
}

/// The same in the middle of a sentence.
pub fn named_within(tables: &Tables, stage: &Stage) -> String {
    named(tables, stage).replacen("The input", "the input", 1)
}

/// A shuffle that throws away much of what is made below it.
/// Source: choice, half as much again as is used.
const WASTED: f64 = 1.5;

impl Input {
    /// Shuffling before a map, where most of what the map makes is never used.
    pub fn shuffled_first(&self, tables: &Tables) -> Option<Fix> {
        let stages = &self.pipeline.stages;
        let (map, shuffle) = stages.iter().find_map(|it| {
            let parent = &stages[it.parent?];
            let is_wasted = it.calls as f64 > WASTED * parent.calls as f64;
            let is_map = it.plain_kind().contains("Map") && it.plain_kind() != "FlatMap";
            (is_map && parent.plain_kind().starts_with("Shuffle") && is_wasted)
                .then_some((it, parent))
        })?;
        let per_step = |calls: i64| calls as f64 / self.pipeline.n_steps.max(1) as f64;
        let text = format!(
            "Shuffle before the map: {:.0} elements are mapped per step, and {:.0} are used",
            per_step(map.calls),
            per_step(shuffle.calls)
        );
        let fix = Fix::new(Change::CheaperInput, text).edit(Edit::ShuffleFirst);
        Some(fix.gives(Prediction::of(tables, &Altered::ShuffleBefore(map.path.clone()))))
    }

    /// Keeping what a stage makes; not where it makes something new each time.
    pub fn cached(&self, tables: &Tables, stage: &Stage) -> Option<Fix> {
        if stage.is_random {
            return None;
        }
        let prediction = Prediction::of(tables, &Altered::Cache(stage.path.clone()));
        // After an endless repeat a cache would grow for ever: there it takes more than one line.
        let below = format!("{}::", stage.path);
        let repeats =
            |it: &Stage| it.path.starts_with(&below) && it.plain_kind().ends_with("Repeat");
        let text = "If the result is the same in every epoch and fits in memory, cache it";
        let fix = match self.pipeline.stages.iter().any(repeats) {
            true => Fix::new(Change::Cache, format!("{text} before repeat()"))
                .edit(Edit::CacheAndRepeat),
            false => {
                Fix::new(Change::Cache, text).edit(Edit::Cache).at(site_of_stage(tables, stage))
            }
        };
        Some(fix.gives(prediction))
    }
}
