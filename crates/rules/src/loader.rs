//! Loaders that make batches in Python: who makes them, and what more workers would give.

use analyses::Tables;
use analyses::batch_loader::BatchLoader;
use analyses::code_site::loader_site;
use analyses::python_line::PythonLine;
use trace::{Dur, EventId};

use crate::dialect::Edit;
use crate::facts::{Facts, MOST_NAMED};
use crate::input::Input;
use crate::lines::{busiest, line_in_words, place};
use crate::samples::Samples;
use crate::{Change, Evidence, Finding, Fix, Gain};

/// As many workers as the printed edit has.
/// Source: choice, as many as small machines have cores.
const WORKERS: i64 = 4;
/// The machine has at least so many cores, where nothing says how many.
/// Source: choice, hardly any machine has fewer.
const FEWEST_CORES: f64 = 2.0;
/// Of the time that workers save, what handing over their batches takes.
/// Source: choice, a guess: a copy through shared memory.
const HANDED_OVER: i64 = 20;
/// Cores that are this busy have no time for more workers.
/// Source: choice, a tenth of a core is no worker.
const ALL_BUSY: f64 = 0.9;
/// Below this share of the loader's time, ops in it are not what it does.
/// Source: physical, nothing else can be more.
const MOSTLY: f64 = 0.5;

/// What the loader costs the step, if it is one of Python.
pub fn finding(tables: &Tables, input: &Input) -> Option<Finding> {
    let loaders = tables.get::<BatchLoader>();
    let (row, loader) = loaders.iter().enumerate().next()?;
    let in_workers = loader.made_in == "workers";
    let wait = input.facts.of("input");
    let rows = tables.get::<PythonLine>();
    let sampled = busiest(&rows, "input");
    let recorded = || Some((loader.function.clone()?, loader.place.clone()?));
    let function = sampled
        .as_ref()
        .map(|it| (it.function.to_owned(), place(&rows[it.lines[0]])))
        .or_else(recorded)
        .map(|(function, place)| format!("{function} ({place})"));
    let per_step = input.facts.per_step(wait);
    let title = match (&function, in_workers) {
        (Some(it), false) => {
            format!("{it} makes batches in the training process: {per_step} of waiting")
        }
        (None, false) => {
            format!("The DataLoader makes batches in the training process: {per_step} of waiting")
        }
        (Some(it), true) => {
            format!("The DataLoader's workers, mostly in {it}, are too slow: {per_step} of waiting")
        }
        (None, true) => format!("The DataLoader's workers are too slow: {per_step} of waiting"),
    };
    let mut finding = Finding::new(title, wait, input.facts.step).evidence(input.waiting(tables));
    for &at in sampled.iter().flat_map(|it| it.lines.iter().take(MOST_NAMED)) {
        let text = line_in_words(&rows[at]);
        finding = finding.evidence(Evidence::text(text).rows("python_line", vec![at]));
    }
    let each = Dur((loader.wait_ps as f64 / loader.batches_per_step.max(1.0)) as i64);
    let mut text = format!("A batch takes {each} to arrive, {} at most", Dur(loader.longest_ps));
    if !in_workers && loader.ops_ps as f64 >= MOSTLY * loader.wait_ps as f64 {
        text += &format!(
            "; {:.0} ops in the loader take {} per step",
            loader.ops_per_step,
            Dur(loader.ops_ps)
        );
    }
    let event = u32::try_from(loader.event).ok().map(EventId);
    let evidence = Evidence::text(text).rows("batch_loader", vec![row]);
    let finding = finding.evidence(evidence.events(event.into_iter().collect()));
    let machine = Machine::of(tables);
    let fix = match in_workers {
        false => {
            Fix::new(Change::InputWorkers, "Make batches in worker processes, ahead of the step")
                .edit(Edit::Workers)
                .gives(Some(first_workers(&input.facts, wait, &machine)))
        }
        true if machine.is_busy => {
            Fix::new(Change::InputWorkers, "Use more workers, on a machine with more cores")
                .untold("the cores of this machine are all busy")
        }
        true => Fix::new(Change::InputWorkers, "Use more workers, as long as cores are free")
            .edit(Edit::MoreWorkers)
            .gives(Some(more_workers(&input.facts, wait))),
    };
    let less = "Do less Python for each example: work on whole batches, store decoded data, and read \
                large files";
    Some(
        finding
            .fix(fix.at(loader_site(tables)))
            .fix(Fix::new(Change::CheaperInput, less).untold("it depends on what can be left out")),
    )
}

/// What the samples beside a run say of its cores.
struct Machine {
    cores: f64,
    is_busy: bool,
}

impl Machine {
    fn of(tables: &Tables) -> Machine {
        let samples = Samples::of(tables);
        let cores = samples.as_ref().and_then(|it| it.fact("cpu_allowed").or(it.fact("cpu_count")));
        let busy = samples.as_ref().and_then(|it| it.mean("cpu/all"));
        Machine {
            cores: cores.unwrap_or(FEWEST_CORES).max(1.0),
            is_busy: busy.is_some_and(|it| it >= ALL_BUSY),
        }
    }
}

/// All that is waited for today moves to workers. At worst the step keeps all cores busy, and shares
/// them; likely they have some of their own.
fn first_workers(facts: &Facts, wait: Dur, machine: &Machine) -> Gain {
    let (step, wait) = (facts.step.0, wait.0);
    let rest = (step - wait).max(1);
    let shared = rest + (wait as f64 / machine.cores.max(FEWEST_CORES)) as i64;
    let ahead = rest.max(wait / WORKERS);
    let likely = (ahead + wait / HANDED_OVER).min(shared);
    Gain::on_host(step, [shared.max(likely).min(step), likely, ahead])
}

/// Twice as many workers are at best twice as fast, and the step waits no more.
fn more_workers(facts: &Facts, wait: Dur) -> Gain {
    let (step, wait) = (facts.step.0, wait.0);
    let rest = (step - wait).max(1);
    let twice = rest.max(step / 2);
    Gain::of_range(step, [step, (twice + step) / 2, rest.max(step / WORKERS)])
}
