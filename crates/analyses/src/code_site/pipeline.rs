//! Lays the stages of a profile along the calls of the user's code, from the consumer down.

use trace::dialect::{self, SiteRole};
use trace::{Process, Site as Noted};

use super::{CodeSite, Site, only};
use crate::Tables;
use crate::input_stage::pipeline::{Pipeline, Stage};

/// More ways to lay one along the other than any pipeline of a person has.
/// Source: choice, a bound on the work.
const MOST_WAYS: usize = 100_000;

pub(super) fn site_of_stage(tables: &Tables, process: &Process, stage: &Stage) -> Option<Site> {
    site_in(&tables.model::<Pipeline>(), process, &stage.path)
}

pub(super) fn site_in(pipeline: &Pipeline, process: &Process, path: &str) -> Option<Site> {
    let at = pipeline.stages.iter().position(|it| it.path == path)?;
    let (made, target) = made_along(pipeline, at)?;
    // What is trained on is what steps of a profile are about, where it is said; otherwise all that
    // is iterated over.
    let (trained, iterated) = ends(process);
    for ends in [trained, iterated] {
        let mut search = Search::new(&process.sites, &made, target);
        for end in ends {
            search.explore(0, end, None);
        }
        if search.n_ways >= MOST_WAYS {
            return None;
        }
        if !search.found.is_empty() {
            let row = |it: &u32| CodeSite::of(*it as usize, &process.sites[*it as usize]);
            return only(search.found.iter().map(row));
        }
    }
    None
}

/// The call at the end of the dataset that is trained on.
pub(super) fn last_site(process: &Process) -> Option<Site> {
    let (trained, iterated) = ends(process);
    let ends = if trained.is_empty() { iterated } else { trained };
    only(ends.iter().map(|&it| CodeSite::of(it as usize, &process.sites[it as usize])))
}

/// A dataset as the program made it, before TensorFlow rewrote the graph.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// `Map`, `ParallelMap`, `Batch`: without its version.
    kind: String,
    /// TensorFlow may have put it there.
    may_be_added: bool,
    /// The graph says so, not an iterator, which may be of what TensorFlow made of it.
    is_certain: bool,
}

/// What the stages down to this one and below it were made as, and which of them this one is.
fn made_along(pipeline: &Pipeline, at: usize) -> Option<(Vec<Made>, usize)> {
    let stage = &pipeline.stages[at];
    // What is below helps to tell two chains of calls apart.
    let below = format!("{}::", stage.path);
    let lower =
        (0..pipeline.stages.len()).filter(|&it| pipeline.stages[it].path.starts_with(&below));
    let lowest = lower.max_by_key(|&it| pipeline.stages[it].path.len()).unwrap_or(at);
    let mut path = Vec::new();
    let mut next = Some(lowest);
    while let Some(it) = next {
        path.push(it);
        next = pipeline.stages[it].parent.filter(|_| path.len() <= pipeline.stages.len());
    }
    path.reverse();
    let mut made = Vec::new();
    let mut target = None;
    let mut before: Option<&str> = None;
    for it in path {
        let stage = &pipeline.stages[it];
        if stage.kind() == "Root" || stage.kind() == "Iterator" {
            continue;
        }
        let dataset = stage.dataset.as_deref();
        // A cache has two iterators.
        if dataset.is_none() || dataset != before {
            let first = made.len();
            made.extend(made_of(stage));
            if it == at {
                // Of a fused one the function is what takes time.
                let works =
                    |it: &Made| ["Map", "ParallelMap", "Filter"].contains(&it.kind.as_str());
                let works = made[first..].iter().position(works);
                target = Some(first + works.unwrap_or(0)).filter(|it| *it < made.len());
            }
        } else if it == at {
            target = made.len().checked_sub(1);
        }
        before = dataset;
    }
    Some((made, target?))
}

/// What a stage was made as; of several that were fused, the consumer's first.
fn made_of(stage: &Stage) -> Vec<Made> {
    let dataset = stage.dataset.as_deref().unwrap_or_default();
    if let Some(fused) = dataset.strip_prefix("fused(").and_then(|it| it.strip_suffix(')')) {
        return fused.rsplit(',').map(|it| Made::of(dataset_kind(it))).collect();
    }
    if stage.is_injected() {
        return vec![Made { may_be_added: true, ..Made::of(stage.plain_kind()) }];
    }
    if dataset.contains("Dataset") {
        return vec![Made::of(dataset_kind(dataset))];
    }
    // An older TensorFlow does not say; its iterators do, nearly.
    let kinds: &[&str] = match stage.plain_kind() {
        "MapAndBatch" => &["Batch", "Map"],
        "ShuffleAndRepeat" => &["Repeat", "Shuffle"],
        "ForeverRepeat" | "FiniteRepeat" | "EmptyRepeat" => &["Repeat"],
        "FiniteTake" | "EmptyTake" => &["Take"],
        "FiniteSkip" | "EmptySkip" => &["Skip"],
        "MemoryCache" | "MemoryCacheImpl" | "FileCache" => &["Cache"],
        kind => &[kind],
    };
    kinds.iter().map(|it| Made { is_certain: false, ..Made::of(it) }).collect()
}

impl Made {
    fn of(kind: &str) -> Made {
        const ADDED: [&str; 11] = [
            "AssertCardinality",
            "AssertNext",
            "AutoShard",
            "Finalize",
            "LegacyRebatch",
            "MaxIntraOpParallelism",
            "Model",
            "Options",
            "Prefetch",
            "PrivateThreadPool",
            "Rebatch",
        ];
        Made { kind: kind.to_owned(), may_be_added: ADDED.contains(&kind), is_certain: true }
    }
}

/// `ParallelMapDatasetV2:17` is `ParallelMap`.
fn dataset_kind(name: &str) -> &str {
    let kind = name.split(':').next().unwrap_or(name).trim();
    kind.find("Dataset").map_or(kind, |it| &kind[..it])
}

/// Sites whose datasets are trained on, and those that are iterated over or that nothing is made of.
fn ends(process: &Process) -> (Vec<u32>, Vec<u32>) {
    let sites = &process.sites;
    let is_dataset = |it: u32| {
        let kind = &sites[it as usize].kind;
        kind.starts_with("dataset.") && kind != "dataset.iter"
    };
    // What came after the profile is not in it.
    let until = process.windows.last().and_then(|it| it.end);
    let in_time = |it: &&Noted| match (it.time, until) {
        (Some(time), Some(until)) => time <= until,
        _ => true,
    };
    let inputs = |is_it: &dyn Fn(&str) -> bool| -> Vec<u32> {
        let of_kind = sites.iter().filter(|it| is_it(&it.kind)).filter(in_time);
        of_kind.flat_map(|it| it.inputs.iter().copied()).filter(|&it| is_dataset(it)).collect()
    };
    let mut iterated = inputs(&|kind| kind == "dataset.iter");
    if iterated.is_empty() {
        let taken = |at: u32| sites.iter().any(|it| it.inputs.contains(&at));
        let all = 0..sites.len() as u32;
        iterated = all
            .filter(|&it| is_dataset(it) && sites[it as usize].inside.is_none() && !taken(it))
            .collect();
    }
    (inputs(&|kind| dialect::site(kind) == Some(SiteRole::Fit)), iterated)
}

/// All ways to lay stages along calls.
struct Search<'a> {
    sites: &'a [Noted],
    made: &'a [Made],
    target: usize,
    n_ways: usize,
    /// What the stage in question may be.
    found: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(sites: &'a [Noted], made: &'a [Made], target: usize) -> Search<'a> {
        Search { sites, made, target, n_ways: 0, found: Vec::new() }
    }

    /// Lays what is left of the stages from `at` on along `site` and what it is made of.
    fn explore(&mut self, at: usize, site: u32, chosen: Option<u32>) {
        self.n_ways += 1;
        if self.n_ways >= MOST_WAYS {
            return;
        }
        let Some(made) = self.made.get(at) else {
            self.found.extend(chosen.filter(|it| !self.found.contains(it)));
            return;
        };
        let noted = &self.sites[site as usize];
        if made.may_be_added {
            self.explore(at + 1, site, chosen);
        }
        if may_be_dropped(&noted.kind) {
            for next in self.below(site) {
                self.explore(at, next, chosen);
            }
        }
        if !makes(noted, made) {
            return;
        }
        let chosen = if at == self.target { Some(site) } else { chosen };
        let below = self.below(site);
        if at + 1 == self.made.len() {
            self.explore(at + 1, site, chosen);
        }
        if is_several(&noted.kind) && at + 1 < self.made.len() {
            self.explore(at + 1, site, chosen);
        }
        for next in below {
            self.explore(at + 1, next, chosen);
        }
    }

    /// What a site takes, and what its function returns.
    fn below(&self, site: u32) -> Vec<u32> {
        let mut below = self.sites[site as usize].inputs.clone();
        let within = |it: &u32| self.sites[*it as usize].inside == Some(site);
        let inner: Vec<u32> = (site + 1..self.sites.len() as u32).filter(within).collect();
        let taken = |at: u32| inner.iter().any(|&it| self.sites[it as usize].inputs.contains(&at));
        below.extend(inner.iter().copied().filter(|&it| !taken(it)));
        below.dedup();
        below
    }
}

/// TensorFlow leaves out what does nothing: `repeat(1)`, `take(-1)`, options.
fn may_be_dropped(kind: &str) -> bool {
    let dropped = ["with_options", "repeat", "take", "skip", "shard", "prefetch", "ignore_errors"];
    kind.strip_prefix("dataset.").is_some_and(|it| dropped.contains(&it))
}

/// Calls that make several datasets at once.
fn is_several(kind: &str) -> bool {
    parts(kind).len() > 1
}

/// Kinds of datasets that a call may make, where these are several.
fn parts(kind: &str) -> &'static [&'static str] {
    match kind {
        "dataset.from_generator" => &["FlatMap", "Generator", "Map", "Tensor"],
        "dataset.list_files" => &["TensorSlice", "Shuffle", "Map", "Concatenate"],
        "dataset.TFRecordDataset"
        | "dataset.TextLineDataset"
        | "dataset.FixedLengthRecordDataset" => &[
            "FlatMap",
            "Interleave",
            "ParallelInterleave",
            "LegacyParallelInterleave",
            "TFRecord",
            "TextLine",
            "FixedLengthRecord",
            "TensorSlice",
            "Map",
        ],
        "dataset.enumerate" => &["Zip", "Range"],
        "dataset.choose_from_datasets" | "dataset.sample_from_datasets" => {
            &["DirectedInterleave", "Map", "Batch", "Random", "Zip", "Range", "Repeat"]
        }
        "dataset.bucket_by_sequence_length" => &["GroupByWindow", "PaddedBatch"],
        "dataset.rejection_resample" => {
            &["Map", "Filter", "Zip", "Batch", "Random", "Scan", "Cache"]
        }
        "dataset.snapshot" | "dataset.load" => &["Snapshot", "Load", "Map", "Interleave"],
        _ => &[],
    }
}

/// Whether a call makes such a dataset.
fn makes(site: &Noted, made: &Made) -> bool {
    let Some(method) = site.kind.strip_prefix("dataset.") else { return false };
    let several = parts(&site.kind);
    if !several.is_empty() {
        return several.contains(&made.kind.as_str());
    }
    let (kind, is_parallel) = match made.kind.strip_prefix("Parallel") {
        Some(kind) => (kind, true),
        None => (made.kind.as_str(), false),
    };
    // Where the number of calls is given, TensorFlow takes another kind.
    let asks = site.args.iter().any(|it| it.0 == "num_parallel_calls");
    if made.is_certain && ["Map", "Batch", "Interleave"].contains(&kind) && asks != is_parallel {
        return false;
    }
    match method {
        "from_tensor_slices" => kind == "TensorSlice",
        "from_tensors" => kind == "Tensor",
        "ragged_batch" => kind == "Batch" || kind == "Map",
        "take_while" => kind == "TakeWhile" || kind == "Map",
        "with_options" => kind == "Options",
        // `padded_batch` is `PaddedBatch`.
        _ => kind.eq_ignore_ascii_case(&method.replace('_', "")),
    }
}
