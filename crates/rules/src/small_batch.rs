//! So few examples a step that its fixed cost is most of it.

use analyses::Tables;
use analyses::code_site::{Site, site_of_stage};
use analyses::host_call::HostCall;
use analyses::input_stage::pipeline::Pipeline;
use analyses::run_info::Hidden;
use hashbrown::HashSet;
use trace::{Dur, EventId, FactValue, OpKind, StrId, Trace};

use crate::confidence;
use crate::dialect::Edit;
use crate::facts::{Facts, NO_STEPS, Op, facts, percent};
use crate::gain::PROFILED;
use crate::input::holds_the_lock;
use crate::launches::launches;
use crate::{Change, Evidence, Finding, Fix, Gain, Rule, Verdict, WORTH_FIXING};

rule! {
    /// The batch is so small that fixed overhead is most of the step.
    ///
    /// ## Evidence
    /// The batch, as the input pipeline's stages tell it, and the runtime's time of a step against
    /// the time that computes; on a GPU, kernels about as short as a launch. Or an input pipeline
    /// that is built for every single call of a model, as Keras' `predict` does.
    ///
    /// ## Fix
    /// A larger batch spreads the fixed cost over more examples, up to where that is a fifth of a
    /// step. Scale the learning rate with it. Where the batch must stay, run several steps in one
    /// call.
    ///
    /// ## When it is wrong
    /// Where memory or convergence sets the batch. The gain is per example, not per step.
    pub struct SmallBatch = "small-batch";
}

/// Keras' default, which nobody chose: what is larger was chosen by somebody.
/// Source: document, the default `batch_size` of Keras' `fit`.
const SMALL: u64 = 32;
/// So many examples fit nearly everywhere.
/// Source: choice, twice Keras' default.
const COMMON: u64 = 64;
/// With the batch unknown, more than half of the step must be dispatch.
/// Source: physical, nothing else can be more.
const MOSTLY: f64 = 0.5;
/// As for tiny ops: shorter work is not worth a launch.
/// Source: document, Holistic Trace Analysis: launching takes 5 to 20 µs.
const SHORT: Dur = Dur(20_000_000);
/// A batch is large enough where what every step costs anyway is this part of it.
/// Source: choice, a fifth.
const SMALL_PART: f64 = 0.2;
/// As many names of stages are looked at for the size of the batch.
/// Source: choice, a bound on the work.
const MOST_STAGES: usize = 200;
/// An op that runs this often in a step is in a loop: no model has so many layers of one name.
/// Source: physical, names of ops are unique in a graph.
const MANY_TIMES: i64 = 8;

impl Rule for SmallBatch {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        // The framework's time is then that of the work, too.
        if let Some(hidden) = Hidden::of(tables.trace()) {
            return Verdict::unknown(hidden.why());
        }
        if let Some(set_up) = set_up(tables, &facts) {
            return set_up.finding(tables, &facts).found();
        }
        let told = batch(tables.trace());
        let fixed = facts.of("runtime");
        // On a CPU the runtime must be more than the math; a device idles for all of it.
        let short = match facts.on_device {
            true => launches(tables).is_some_and(|it| it.kernels > 0 && it.typical_kernel <= SHORT),
            false => fixed >= facts.of("compute"),
        };
        let worth = match told {
            Some((batch, _)) => batch <= SMALL && facts.share_of(fixed) >= WORTH_FIXING,
            // On a CPU, dispatch that is most of the step says as much as a batch that is told.
            None if !facts.on_device && facts.share_of(fixed) >= MOSTLY => true,
            None if short => return Verdict::unknown("this profile does not show the batch size"),
            None => false,
        };
        if !worth || !short {
            return Verdict::Clear;
        }
        // A loop of many small ops inside the step is slow whatever the batch.
        if !facts.on_device && loops_inside(tables, facts.n_steps) {
            return Verdict::Clear;
        }
        let grown = Growth::of(tables, &facts, told.map(|it| it.0));
        let times = grown.times;
        let share = percent(facts.share_of(fixed));
        let (title, size, evidence) = match told {
            Some((batch, event)) => (
                format!(
                    "A batch of {batch} is too small: {share} of each step ({fixed}) is fixed overhead"
                ),
                Edit::BatchOf.with(batch * times),
                Evidence::text(format!("The input pipeline makes batches of {batch}"))
                    .events(vec![event]),
            ),
            None => (
                format!("The batch is too small: {share} of each step ({fixed}) is fixed overhead"),
                Edit::TimesLargerBatch.with(times),
                Evidence::text(format!("The ops of a step compute for {}", facts.of("compute")))
                    .steps("compute", Facts::rows(tables)),
            ),
        };
        let amount = told.and_then(|it| u32::try_from(it.0 * times).ok());
        let mut larger = Fix::new(
            Change::LargerBatch,
            format!("Try a {times}× larger batch (the gain is per example)"),
        );
        larger.amount = amount;
        let finding = Finding::new(title, fixed, facts.step)
            .confidence(if told.is_some() { confidence::LIKELY } else { confidence::EVEN })
            .evidence(evidence)
            .fix(larger.edit(size).gives(Some(grown.gain)).at(batch_site(tables)));
        let several = "it depends on how much of the overhead is paid per call";
        finding
            .fix(
                Fix::new(Change::StepsPerCall, "Or run several steps in one call")
                    .edit(Edit::StepsPerCall)
                    .untold(several),
            )
            .symptom_of(&["eager-ops", "tiny-ops", "retracing", "recompilation", "sync-stall"])
            .symptom_of(if holds_the_lock(tables) { &["input-python"] } else { &[] })
            .found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is fixed overhead that a larger batch would share")
    }
}

/// A new input pipeline for every call of a model.
#[derive(Debug)]
pub struct SetUp {
    /// What is called with it.
    function: String,
    /// What stays of a step: the call, and waiting for its batch.
    stays: Dur,
    /// Rows of `host_call`.
    rows: Vec<usize>,
}

/// A step that is mostly the building of its input pipeline.
pub fn set_up(tables: &Tables, facts: &Facts) -> Option<SetUp> {
    let calls = tables.get::<HostCall>();
    let in_every_step = |it: &HostCall| it.per_step.round() >= 1.0;
    let made = calls.iter().position(|it| it.call == "MakeIterator" && in_every_step(it))?;
    let functions = calls.iter().enumerate().filter(|it| it.1.kind == "function");
    let (row, function) =
        functions.filter(|it| in_every_step(it.1)).max_by_key(|it| it.1.total_ps)?;
    // Where it is called many times, the pipeline serves them all.
    if function.per_step.round() > 1.0 {
        return None;
    }
    let batches = calls.iter().filter(|it| it.call == "next batch").map(|it| it.total_ps);
    let stays = Dur(function.total_ps + batches.sum::<i64>());
    let is_mostly = facts.share_of(Dur(facts.step.0 - stays.0)) >= MOSTLY;
    is_mostly.then(|| SetUp { function: function.call.clone(), stays, rows: vec![made, row] })
}

/// A call of the model itself, as times of its compiled part: at worst, likely, at best.
/// Source: choice, a guess; arguments are converted and results copied.
const CALLED_DIRECTLY: [i64; 3] = [4, 2, 1];

impl SetUp {
    fn finding(&self, tables: &Tables, facts: &Facts) -> Finding {
        let fixed = Dur(facts.step.0 - self.stays.0);
        let batch = batch(tables.trace()).map(|it| it.0);
        let times = batch.map_or(COMMON / 2, |it| COMMON / it).max(2);
        let (step, per_call) = (facts.step.0 as f64, fixed.0 as f64);
        let gain = Gain {
            low: shared_by(times, step, per_call, PROFILED),
            speedup: shared_by(times, step, per_call, 0.0),
            high: times as f64 * (1.0 + PROFILED),
        };
        let directly = CALLED_DIRECTLY.map(|it| it * self.stays.0);
        let title = format!(
            "Every step builds a new input pipeline for one call of {}: {}",
            self.function,
            facts.per_step(fixed)
        );
        let text = format!("The call itself and its batch take {}", facts.per_step(self.stays));
        Finding::new(title, fixed, facts.step)
            .headline("is spent building an input pipeline for one call")
            .evidence(Evidence::text(text).rows("host_call", self.rows.clone()))
            .fix(
                Fix::new(
                    Change::LargerBatch,
                    format!(
                        "Pass {times}× as many examples in each call (the gain is per example)"
                    ),
                )
                .edit(Edit::PredictAll)
                .gives(Some(gain)),
            )
            .fix(
                Fix::new(Change::CreateOnce, "Or call the model itself, which builds no pipeline")
                    .edit(Edit::CallTheModel)
                    .gives(Some(Gain::of_range(facts.step.0, directly))),
            )
    }
}

/// The user's one call of `batch`.
fn batch_site(tables: &Tables) -> Option<Site> {
    let pipeline = tables.model::<Pipeline>();
    let sites = pipeline.stages.iter().filter_map(|it| site_of_stage(tables, it));
    sites.filter(|it| it.kind == "dataset.batch").last()
}

/// Whether most op runs belong to ops that run many times in each step.
fn loops_inside(tables: &Tables, n_steps: usize) -> bool {
    let (mut inside, mut all) = (0, 0);
    for op in Op::all(tables) {
        all += op.count;
        if op.count >= MANY_TIMES * n_steps as i64 {
            inside += op.count;
        }
    }
    inside * 2 > all
}

/// What an example gains where so many share what a step costs anyway, of which recording is a part
/// that neither step has without a profiler.
fn shared_by(times: u64, step: f64, fixed: f64, recorded: f64) -> f64 {
    let paid = fixed * (1.0 - recorded);
    (step - fixed + paid) / (step - fixed + paid / times as f64)
}

/// A larger batch, and what it gives per example.
struct Growth {
    times: u64,
    gain: Gain,
}

impl Growth {
    /// Larger until what every step costs anyway is a fifth of it, and no larger than is common.
    fn of(tables: &Tables, facts: &Facts, batch: Option<u64>) -> Growth {
        let step = facts.step.0 as f64;
        let surely = facts.of("runtime").0 as f64;
        // Python's part does not grow with the batch; ops too short to be kept by their data may not.
        let brief: f64 =
            Op::all(tables).iter().filter(|it| it.each() <= SHORT).map(|it| it.share).sum();
        let likely = surely + facts.of("python").0 as f64;
        let perhaps = likely + facts.of("compute").0 as f64 * brief;
        let most = batch.map_or(COMMON / 2, |it| COMMON / it).max(2);
        let mut times = 2;
        while times < most && likely > SMALL_PART * (likely + times as f64 * (step - likely)) {
            times *= 2;
        }
        let gain = Gain {
            low: shared_by(times, step, surely, PROFILED),
            speedup: shared_by(times, step, likely, 0.0),
            high: shared_by(times, step, perhaps.min(step), 0.0) * (1.0 + PROFILED),
        };
        Growth { times, gain }
    }
}

/// The batch, told by the outermost stage of the input pipeline that says it.
fn batch(trace: &Trace) -> Option<(u64, EventId)> {
    let mut seen: HashSet<StrId> = HashSet::new();
    let mut found: Option<(usize, u64, EventId)> = None;
    let stages = trace.track_ids().flat_map(|it| trace.rows_of(it, OpKind::InputStage));
    for row in stages {
        if !seen.insert(trace.events.name[row]) {
            continue;
        }
        let event = EventId(row as u32);
        let name = trace.name(event);
        // Stages of many files are many names; the outermost are met first.
        if seen.len() > MOST_STAGES || !name.starts_with("Iterator::") || !name.contains("Batch") {
            continue;
        }
        let depth = name.matches("::").count();
        if let Some(batch) = batch_of(trace, event).filter(|_| found.is_none_or(|it| depth < it.0))
        {
            found = Some((depth, batch, event));
        }
    }
    found.map(|it| (it.1, it.2))
}

fn batch_of(trace: &Trace, event: EventId) -> Option<u64> {
    let args = trace.args.of(event);
    let of = |key: &str| args.iter().find(|it| it.0 == key).map(|it| &it.1);
    let said = match of("batch_size") {
        Some(FactValue::Int(it)) => u64::try_from(*it).ok(),
        Some(FactValue::Text(it)) => it.parse().ok(),
        _ => None,
    };
    // `[128,32,32,3] [128]`: what all components begin with.
    let shape = || match of("shapes") {
        Some(FactValue::Text(it)) => {
            it.split(' ').next()?.trim_matches(['[', ']']).split(',').next()?.parse().ok()
        }
        _ => None,
    };
    said.or_else(shape).filter(|&it: &u64| it > 0)
}

#[cfg(test)]
mod tests {
    use super::SmallBatch;
    use crate::Verdict;
    use crate::testing::{finding, missing, verdict};

    fn picture(batch: &str) -> String {
        format!(
            "
            host/python: train#1 0..100, EagerExecute 0..100, train#2 100..200, \
            EagerExecute 100..200, train#3 200..300, EagerExecute 200..300
            host/tf_data_iterator: Iterator::Root::BatchV2{{{batch}}} 0..1
            gpu0/s: k 20..30, k 40..50, k 120..130, k 140..150, k 220..230, k 240..250
            "
        )
    }

    #[test]
    fn few_examples_and_short_kernels_are_too_few() {
        let found = finding(&SmallBatch, &picture("batch_size=4"));
        assert!(found.title.starts_with("A batch of 4 is too small"), "{}", found.title);
        let shape = finding(&SmallBatch, &picture("shapes=[8,3]"));
        assert!(shape.title.starts_with("A batch of 8 is too small"), "{}", shape.title);
    }

    #[test]
    fn a_pipeline_for_a_single_call_is_set_up_for_nothing() {
        let steps = |calls: usize| {
            let step = |it: usize| {
                let at = it * 1000;
                let called = (0..calls).map(|it| {
                    let from = at + 850 + 20 * it;
                    format!("EagerLocalExecute: __inference_one_step_1 {from}..{}", from + 15)
                });
                format!(
                    "predict#{it} {at}..{}, EagerLocalExecute: MakeIterator {}..{}, {}",
                    at + 1000,
                    at + 10,
                    at + 800,
                    called.collect::<Vec<_>>().join(", ")
                )
            };
            format!("host/python: {}", (0..4).map(step).collect::<Vec<_>>().join(", "))
        };
        let found = finding(&SmallBatch, &steps(1));
        assert!(
            found
                .title
                .starts_with("Every step builds a new input pipeline for one call of one_step"),
            "{}",
            found.title
        );
        let gain = found.gain.unwrap();
        assert!(gain.low > 5.0 && gain.high > 30.0, "{gain:?}");
        let shared = finding(&SmallBatch, &steps(5)).title;
        assert!(shared.starts_with("The batch is too small"), "many calls share it: {shared}");
    }

    #[test]
    fn a_batch_grows_as_far_as_it_helps_and_is_common() {
        // 80 of 100 are fixed for sure, kernels of 10 µs likely.
        let found = finding(&SmallBatch, &picture("batch_size=4"));
        assert_eq!(found.fix[0].edit.as_deref(), Some("ds = ds.batch(64)"));
        let gain = found.gain.unwrap();
        assert!(gain.low > 2.0 && gain.low < gain.speedup && gain.speedup <= 16.0, "{gain:?}");
        assert!(gain.high >= 16.0, "{gain:?}");
        let found = finding(&SmallBatch, &picture("batch_size=32"));
        assert_eq!(found.fix[0].edit.as_deref(), Some("ds = ds.batch(64)"));
        assert!(found.gain.unwrap().speedup <= 2.0);
        assert!(found.cost.0 < 80_000_000 && found.cost.0 >= 40_000_000);
    }

    #[test]
    fn a_large_batch_is_clear() {
        assert_eq!(verdict(&SmallBatch, &picture("batch_size=256")), Verdict::Clear);
    }

    #[test]
    fn a_host_that_mostly_dispatches_has_too_little_to_do() {
        let found = finding(
            &SmallBatch,
            "
            host/python: train#1 0..100, EagerExecute 0..100, train#2 100..200, \
            EagerExecute 100..200, train#3 200..300, EagerExecute 200..300
            host/tf_Compute: MatMul:MatMul 40..60, MatMul:MatMul 140..160, MatMul:MatMul 240..260
            ",
        );
        assert!(found.title.starts_with("The batch is too small: 80%"), "{}", found.title);
    }

    #[test]
    fn where_nothing_tells_the_batch_it_cannot_know() {
        let why = missing(&SmallBatch, &picture("parallelism=2"));
        assert_eq!(why, "this profile does not show the batch size");
    }
}
