//! Says of each slow step what made it slow.
//!
//! ```text
//! ordinary   |in|-- compute --|       MatMul 8, Relu 1
//! slow       |in|---------- compute ----------|   MatMul 24, Relu 1
//! excess         '- compute 16, of it MatMul 16
//! ```
//!
//! The category with the largest excess over ordinary steps comes from `step_time`; the name that
//! holds it from comparing what ran in the slow step with what runs in a few ordinary ones. Events
//! of all other steps are not looked at.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use trace::{EventId, OpKind, OpName, StrId, Trace, TrackId, TrackKind};

use crate::compile::{Compile, function_name};
use crate::replay::rows_in;
use crate::step::{HostSteps, Step, is_pipeline_thread, median, top_calls_among};
use crate::step_spread::StepSpread;
use crate::step_time::{CATEGORIES, StepTime};
use crate::{Analysis, Tables};

table! {
    /// The steps that take much longer than the others, and what made them.
    pub struct StepOutlier = "step_outlier" {
        /// The host whose step this is.
        host: String,
        /// The step, as in the table `step`.
        step: i64,
        /// Wall time of the step.
        dur_ps: i64,
        /// How much longer than an ordinary step.
        excess_ps: i64,
        /// The same, as a multiple of the ordinary step: 3 is three times as long.
        ratio: f64,
        /// The category with the largest excess over ordinary steps.
        category: &'static str,
        /// That category's excess.
        category_excess_ps: i64,
        /// What takes that excess: an op's type, an event, a function; absent where nothing does.
        name: Option<String>,
        /// How much of the excess it takes, added over threads.
        name_excess_ps: Option<i64>,
        /// The op or event itself that takes most of that.
        longest: Option<String>,
        /// Of all ops or events that ordinary steps spend this category on, the part that took half
        /// as long again, 0 to 1: with more to do most do, on a busy machine those that were hit.
        grown_share: Option<f64>,
        /// A function that is called in this step and not in ordinary ones, as one that evaluates,
        /// where it takes most of the excess.
        extra_call: Option<String>,
        /// The number of steps from one slow step of this cause to the next, if it is regular.
        period: Option<i64>,
    }
}

/// So many slow steps are looked into, the longest first: they tell what the others are.
/// Source: choice, a bound on the work.
const MOST_LOOKED_AT: usize = 100;
/// So many ordinary steps say what is ordinary.
/// Source: choice, a guess: an odd number has a middle one.
const ORDINARY: usize = 9;
/// A name holds the excess where it has at least this part of it.
/// Source: choice, a guess.
const HOLDS: f64 = 0.3;
/// Fewer slow steps have no rhythm.
/// Source: physical, two distances can be compared, one cannot.
const FEWEST_IN_ROW: usize = 3;
/// The longest are those with at least one part in so many of the third-longest's excess.
/// Source: choice, a guess: a third.
const NEAR_THE_LONGEST: i64 = 3;
/// An op takes longer where it takes this ratio of its usual time.
/// Source: choice, half as long again.
const GROWN: (i64, i64) = (3, 2);
/// Slow steps come regularly where this part of the distances between them is the same.
/// Source: choice, four in five.
const REGULAR: (usize, usize) = (4, 5);
/// With more to do at least this part of the ops takes longer. Of captures on two cores, in requests
/// with more to do it is 0.69 to 1; in steps slowed by other programs up to 0.46. Ops that work
/// on weights do not grow with the batch, which in a training step is up to half of them.
/// Source: choice, between the two kinds of captures.
const MOSTLY_GROWN: f64 = 0.5;

impl StepOutlier {
    /// Whether only some of what computes took longer, as where a busy machine hit them.
    pub fn is_perhaps_chance(&self) -> bool {
        matches!(self.category, "compute" | "collective" | "transfer_in" | "transfer_out")
            && self.grown_share.is_none_or(|it| it < MOSTLY_GROWN)
    }
}

impl Analysis for StepOutlier {
    fn run(tables: &Tables) -> Vec<StepOutlier> {
        let trace = tables.trace();
        let spreads = tables.get::<StepSpread>();
        let mut slow = spreads.iter().filter(|it| it.slow > 0).peekable();
        if slow.peek().is_none() {
            return Vec::new();
        }
        let hosts: HashMap<&str, TrackId> =
            trace.tracks_of(TrackKind::Host).map(|it| (trace.track_name(it), it)).collect();
        let times = tables.get::<StepTime>();
        let mut times_of: HashMap<&str, Vec<&StepTime>> = HashMap::new();
        for row in times.iter() {
            times_of.entry(row.host.as_str()).or_default().push(row);
        }
        let mut rows = Vec::new();
        for spread in slow {
            let Some(&host) = hosts.get(spread.host.as_str()) else { continue };
            let times = times_of.get(spread.host.as_str()).map_or(&[][..], Vec::as_slice);
            rows.extend(of_host(tables, host, spread, times));
        }
        rows
    }
}

fn of_host(
    tables: &Tables,
    host: TrackId,
    spread: &StepSpread,
    times: &[&StepTime],
) -> Vec<StepOutlier> {
    let trace = tables.trace();
    let steps = tables.model::<HostSteps>();
    let steps: Vec<&Step> = steps.counted(&spread.host).collect();
    let (slow, ordinary): (Vec<&Step>, Vec<&Step>) =
        steps.iter().partition(|it| it.dur_ps > spread.limit_ps);
    let categories = Categories::of(times, &ordinary);

    let mut closest = ordinary;
    closest.sort_by_key(|it| ((it.dur_ps - spread.typical_ps).abs(), it.step));
    closest.truncate(ORDINARY);
    let mut looked_at: Vec<i64> = slow.iter().map(|it| it.step).collect();
    looked_at.sort_by_key(|&it| std::cmp::Reverse(categories.excess(it).1));
    looked_at.truncate(MOST_LOOKED_AT);

    let mut ordinary_of: HashMap<&str, Names> = HashMap::new();
    let mut usual_calls: Option<BTreeSet<StrId>> = None;
    let mut rows = Vec::new();
    for step in slow {
        let (category, category_excess_ps) = categories.excess(step.step);
        let mut row = StepOutlier {
            host: spread.host.clone(),
            step: step.step,
            dur_ps: step.dur_ps,
            excess_ps: step.dur_ps - spread.typical_ps,
            ratio: step.dur_ps as f64 / spread.typical_ps.max(1) as f64,
            category,
            category_excess_ps,
            name: None,
            name_excess_ps: None,
            longest: None,
            grown_share: None,
            extra_call: None,
            period: None,
        };
        let driver = TrackId(step.track as u32);
        let usual_calls = usual_calls.get_or_insert_with(|| {
            let spans = closest.iter().map(|it| it.span());
            spans.flat_map(|it| calls_in(trace, driver, it)).map(|it| it.0).collect()
        });
        row.extra_call = extra_call(trace, driver, step, row.excess_ps, usual_calls);
        if category == "compile" {
            let compiled = tables.get::<Compile>();
            let most = compiled.iter().filter(|it| it.host == row.host && it.steps > 0);
            row.name = most.max_by_key(|it| it.step_ps).and_then(|it| it.function.clone());
        } else if looked_at.contains(&step.step) {
            let usual = ordinary_of.entry(category).or_insert_with(|| {
                let mut all = Names::default();
                for it in &closest {
                    all.add(trace, host, driver, it.span(), category);
                }
                all
            });
            let mut own = Names::default();
            own.add(trace, host, driver, step.span(), category);
            own.explain(trace, usual, closest.len(), &mut row);
        }
        rows.push(row);
    }
    for group in groups(&rows) {
        // Chance hits among them would hide a rhythm.
        let meant = group.iter().copied().filter(|&it| !rows[it].is_perhaps_chance());
        let meant: Vec<usize> = meant.collect();
        let group = if meant.len() < FEWEST_IN_ROW { group } else { meant };
        let period = period(&group.iter().map(|&it| rows[it].step).collect::<Vec<_>>());
        for at in group {
            rows[at].period = period;
        }
    }
    if let Some((period, long)) = regular(&rows) {
        for at in long {
            rows[at].period = Some(period);
        }
    }
    rows
}

/// Calls of a thread that lie in no other, and how long each took; but for fetching input.
fn calls_in(trace: &Trace, driver: TrackId, span: (i64, i64)) -> Vec<(StrId, i64)> {
    let (calls, _) = top_calls_among(trace, rows_in(trace, driver, span));
    let calls = calls.into_iter().filter(|it| trace.events.kind[it.0.row()] != OpKind::InputWait);
    calls.map(|it| (it.1, trace.events.dur[it.0.row()].0)).collect()
}

fn extra_call(
    trace: &Trace,
    driver: TrackId,
    step: &Step,
    excess_ps: i64,
    usual: &BTreeSet<StrId>,
) -> Option<String> {
    let mut times: BTreeMap<StrId, i64> = BTreeMap::new();
    for (name, dur) in calls_in(trace, driver, step.span()) {
        if !usual.contains(&name) {
            let time = times.entry(name).or_default();
            *time = time.saturating_add(dur);
        }
    }
    let (name, time) = times.into_iter().max_by_key(|it| it.1)?;
    (time >= excess_ps / 2).then(|| function_name(trace.text(name)))?
}

/// The longest, where they come regularly: they have one cause, whichever of its ops took longest
/// in each, and shorter ones between them have another.
fn regular(rows: &[StepOutlier]) -> Option<(i64, Vec<usize>)> {
    let mut longest: Vec<i64> = rows.iter().map(|it| it.excess_ps).collect();
    longest.sort_unstable_by_key(|&it| std::cmp::Reverse(it));
    // As long as three of them at least, not as one that may have been hit by something else.
    let third = *longest.get(2)?;
    let mut long: Vec<usize> =
        (0..rows.len()).filter(|&it| rows[it].excess_ps >= third / NEAR_THE_LONGEST).collect();
    let steps = |long: &[usize]| long.iter().map(|&it| rows[it].step).collect::<Vec<_>>();
    // One of them may have been hit by something else on top, and still keeps the rhythm.
    if let Some(period) = period(&steps(&long)) {
        return Some((period, long));
    }
    let category = rows[*long.iter().max_by_key(|&&it| rows[it].excess_ps)?].category;
    long.retain(|&it| rows[it].category == category);
    Some((period(&steps(&long))?, long))
}

/// Steps by category, over all devices of a host.
struct Categories {
    of: HashMap<i64, [i64; CATEGORIES.len()]>,
    typical: [i64; CATEGORIES.len()],
}

impl Categories {
    fn of(times: &[&StepTime], ordinary: &[&Step]) -> Categories {
        let mut of: HashMap<i64, ([i64; CATEGORIES.len()], i64)> = HashMap::new();
        for row in times {
            let (sums, n) = of.entry(row.step).or_default();
            *n += 1;
            for (sum, category) in sums.iter_mut().zip(CATEGORIES) {
                *sum = sum.saturating_add(category.1(row));
            }
        }
        let of: HashMap<i64, _> =
            of.into_iter().map(|(step, (sums, n))| (step, sums.map(|it| it / n))).collect();
        let mut typical = [0; CATEGORIES.len()];
        for (at, typical) in typical.iter_mut().enumerate() {
            let mut all: Vec<i64> =
                ordinary.iter().filter_map(|it| of.get(&it.step)).map(|it| it[at]).collect();
            *typical = median(&mut all).unwrap_or(0);
        }
        Categories { of, typical }
    }

    /// The category that grew most, and by how much.
    fn excess(&self, step: i64) -> (&'static str, i64) {
        let Some(own) = self.of.get(&step) else { return ("idle", 0) };
        let excess = |at: usize| own[at] - self.typical[at];
        let most = (0..CATEGORIES.len()).max_by_key(|&it| excess(it)).unwrap_or(0);
        (CATEGORIES[most].0, excess(most))
    }
}

/// Self time by event name, within some steps.
#[derive(Debug, Default)]
struct Names {
    of: HashMap<StrId, i64>,
}

/// Whether events of a kind can hold the time of a category.
fn holds(category: &str, kind: OpKind) -> bool {
    match category {
        "input" => kind == OpKind::InputWait,
        "output" => kind == OpKind::Save,
        "compute" => {
            matches!(kind, OpKind::Op | OpKind::Program | OpKind::Kernel | OpKind::Memset)
        }
        "collective" => matches!(kind, OpKind::Collective | OpKind::CopyPeer),
        "transfer_in" => kind == OpKind::CopyIn,
        "transfer_out" => kind == OpKind::CopyOut,
        "python" => matches!(kind, OpKind::Python | OpKind::PythonOp | OpKind::User),
        "runtime" => matches!(kind, OpKind::Runtime | OpKind::Launch | OpKind::Sync),
        _ => false,
    }
}

impl Names {
    fn add(
        &mut self,
        trace: &Trace,
        host: TrackId,
        driver: TrackId,
        span: (i64, i64),
        category: &str,
    ) {
        // What the driving thread did decides where nothing computes.
        let driver_only = matches!(category, "python" | "runtime");
        for &track in trace.all_below(host) {
            let fits = match trace.tracks[track.row()].kind {
                TrackKind::Thread => {
                    (!driver_only || track == driver)
                        && (category == "input" || !is_pipeline_thread(trace.track_name(track)))
                }
                TrackKind::Stream => !driver_only,
                _ => false,
            };
            if fits {
                self.add_track(trace, track, span, category);
            }
        }
    }

    fn add_track(&mut self, trace: &Trace, track: TrackId, span: (i64, i64), category: &str) {
        let rows = trace.tracks[track.row()].rows();
        let starts = &trace.events.start[rows.clone()];
        let from = rows.start + starts.partition_point(|it| it.0 < span.0);
        let to = rows.start + starts.partition_point(|it| it.0 < span.1);
        // End, name, self time so far, until when it is given out.
        let mut open: Vec<(i64, StrId, i64)> = Vec::new();
        let mut at = span.0;
        let close = |names: &mut Names, name: StrId, own: i64| {
            let sum = names.of.entry(name).or_default();
            *sum = sum.saturating_add(own);
        };
        for row in from..to {
            if !holds(category, trace.events.kind[row]) {
                continue;
            }
            let start = trace.events.start[row].0;
            while let Some(top) = open.last_mut().filter(|it| it.0 <= start) {
                top.2 += (top.0 - at).max(0);
                at = at.max(top.0);
                let (_, name, own) = *top;
                open.pop();
                close(self, name, own);
            }
            if let Some(top) = open.last_mut() {
                top.2 += (start - at).max(0);
            }
            at = at.max(start);
            let end = trace.events.end(EventId(row as u32)).0.min(span.1);
            let end = open.last().map_or(end, |it| end.min(it.0));
            let op = trace.details[trace.events.detail[row].row()].op;
            open.push((end, op.unwrap_or(trace.events.name[row]), 0));
        }
        while let Some((end, name, own)) = open.pop() {
            close(self, name, own + (end - at).max(0));
            at = at.max(end);
        }
    }

    /// Names what this step has more of than ordinary ones.
    fn explain(&self, trace: &Trace, usual: &Names, n_usual: usize, row: &mut StepOutlier) {
        let n = n_usual.max(1) as i64;
        let usual_of = |it: &StrId| usual.of.get(it).map_or(0, |it| it / n);
        let mut labels: HashMap<String, (i64, StrId, i64)> = HashMap::new();
        let mut sorted: Vec<(&StrId, &i64)> = self.of.iter().collect();
        sorted.sort_unstable_by_key(|it| it.0);
        for (name, own) in sorted {
            let excess = own - usual_of(name);
            let label = labels.entry(label(trace.text(*name))).or_insert((0, *name, i64::MIN));
            label.0 += excess;
            if excess > label.2 {
                (label.1, label.2) = (*name, excess);
            }
        }
        let most = labels.into_iter().max_by(|a, b| a.1.0.cmp(&b.1.0).then(b.0.cmp(&a.0)));
        let Some((name, (excess, longest, _))) = most else { return };
        if (excess as f64) < HOLDS * row.category_excess_ps as f64 || excess <= 0 {
            return;
        }
        let ordinary = usual.of.keys().filter(|it| usual_of(it) > 0);
        let own_of = |it: &StrId| self.of.get(it).copied().unwrap_or(0);
        let grown =
            ordinary.clone().filter(|it| own_of(it) / GROWN.0 >= usual_of(it) / GROWN.1).count();
        let n_ordinary = ordinary.count();
        row.grown_share = (n_ordinary > 0).then(|| grown as f64 / n_ordinary as f64);
        row.name_excess_ps = Some(excess);
        row.longest = Some(trace.text(longest).to_owned());
        row.name = Some(name);
    }
}

/// What a person calls an event: an op's type, else its name without what the framework puts
/// in front.
fn label(name: &str) -> String {
    if let Some(op) = name.strip_prefix("EagerLocalExecute: ") {
        return function_name(op).unwrap_or_else(|| op.to_owned());
    }
    if let Some(op) = OpName::parse(name) {
        return op.op_type.trim_start_matches("_Mkl").trim_start_matches("_Fused").to_owned();
    }
    if name.starts_with("IteratorGetNext") {
        return "IteratorGetNext".to_owned();
    }
    name.trim_start_matches('$').to_owned()
}

/// Slow steps by cause, in the order they came.
fn groups(rows: &[StepOutlier]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let same =
            |it: &Vec<usize>| rows[it[0]].category == row.category && rows[it[0]].name == row.name;
        match groups.iter().position(same) {
            Some(group) => groups[group].push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

/// The distance that nearly all of at least three have.
fn period(steps: &[i64]) -> Option<i64> {
    let gaps: Vec<i64> = steps.windows(2).map(|it| it[1] - it[0]).collect();
    if gaps.len() < 2 {
        return None;
    }
    let usual = median(&mut gaps.clone())?;
    let same = gaps.iter().filter(|&&it| it == usual).count();
    (usual > 1 && same * REGULAR.1 >= gaps.len() * REGULAR.0).then_some(usual)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::{StepOutlier, label, period};
    use crate::Tables;

    type Row<'a> = (i64, &'a str, i64, Option<&'a str>, Option<f64>, Option<i64>);

    /// Step, category, its excess (µs), what holds it, the part that grew, period.
    fn check(picture: &str, expected: &[Row<'_>]) {
        let tables = Tables::new(Arc::new(draw(picture)));
        let rows = tables.get::<StepOutlier>();
        let found: Vec<Row<'_>> = rows
            .iter()
            .map(|it| {
                let excess = it.category_excess_ps / 1_000_000;
                (it.step, it.category, excess, it.name.as_deref(), it.grown_share, it.period)
            })
            .collect();
        assert_eq!(found, expected);
    }

    /// Steps one after the other: each is a list of op and length, run one after the other.
    fn steps(of: &[&[(&str, i64)]]) -> String {
        let (mut python, mut compute) = (String::new(), String::new());
        let mut at = 0;
        for (step, ops) in of.iter().enumerate() {
            let start = at;
            for (op, dur) in *ops {
                compute += &format!("{op} {at}..{}, ", at + dur);
                at += dur;
            }
            python += &format!("train#{step} {start}..{at}, EagerExecute {start}..{at}, ");
        }
        format!("host/python: {python}\nhost/tf_Compute: {compute}\n")
    }

    const USUAL: &[(&str, i64)] = &[
        ("a/MatMul:MatMul", 10),
        ("b/MatMul:MatMul", 10),
        ("c/MatMul:MatMul", 10),
        ("r/Relu:Relu", 5),
    ];

    #[test]
    fn the_op_with_more_to_do_is_named() {
        let heavy: &[(&str, i64)] = &[
            ("a/MatMul:MatMul", 60),
            ("b/MatMul:MatMul", 60),
            ("c/MatMul:MatMul", 60),
            ("r/Relu:Relu", 9),
        ];
        let mut all = [USUAL; 14];
        (all[2], all[6], all[10]) = (heavy, heavy, heavy);
        let row = |step| (step, "compute", 154, Some("MatMul"), Some(1.0), Some(4));
        check(&steps(&all), &[row(2), row(6), row(10)]);
    }

    #[test]
    fn a_rhythm_shows_whichever_op_was_longest_and_whoever_was_hit_between() {
        let heavy = |a: i64, r: i64| {
            [
                ("a/MatMul:MatMul", a),
                ("b/MatMul:MatMul", 10),
                ("c/MatMul:MatMul", 10),
                ("r/Relu:Relu", r),
            ]
        };
        let (by_math, by_relu, hit) = (heavy(160, 20), heavy(30, 140), heavy(40, 10));
        let mut all = [USUAL; 14];
        (all[2], all[6], all[10], all[11]) = (&by_math, &by_relu, &by_math, &hit);
        let tables = Tables::new(Arc::new(draw(&steps(&all))));
        let rows = tables.get::<StepOutlier>();
        let found: Vec<_> =
            rows.iter().map(|it| (it.step, it.name.as_deref(), it.period)).collect();
        let (math, relu) = (Some("MatMul"), Some("Relu"));
        assert_eq!(
            found,
            [(2, math, Some(4)), (6, relu, Some(4)), (10, math, Some(4)), (11, math, None)]
        );
    }

    #[test]
    fn where_one_op_was_hit_the_others_are_as_ever() {
        let hit: &[(&str, i64)] = &[
            ("a/MatMul:MatMul", 10),
            ("b/MatMul:MatMul", 95),
            ("c/MatMul:MatMul", 10),
            ("r/Relu:Relu", 5),
        ];
        let mut all = [USUAL; 9];
        all[4] = hit;
        check(&steps(&all), &[(4, "compute", 85, Some("MatMul"), Some(0.25), None)]);
    }

    #[test]
    fn saving_every_third_step_is_seen() {
        let mut picture = "host/python: ".to_owned();
        let mut at = 0;
        for step in 0..12 {
            let dur = if step % 3 == 1 { 300 } else { 40 };
            picture += &format!("train#{step} {at}..{0}, EagerExecute {at}..{0}, ", at + dur);
            if dur == 300 {
                picture += &format!("SaveV2:SaveV2 {}..{}, ", at + 40, at + 300);
            }
            at += dur;
        }
        let row = |step| (step, "output", 260, Some("SaveV2"), None, Some(3));
        check(&picture, &[row(1), row(4), row(7), row(10)]);
    }

    #[test]
    fn steps_that_are_alike_have_none() {
        check(&steps(&[USUAL; 9]), &[]);
    }

    #[test]
    fn periods_and_labels() {
        assert_eq!(period(&[7, 27, 47, 67]), Some(20));
        assert_eq!(period(&[7, 9, 47]), None);
        assert_eq!(period(&[7, 27]), None);
        assert_eq!(label("EagerLocalExecute: SaveV2"), "SaveV2");
        assert_eq!(label("x/y:_MklMatMul"), "MatMul");
        assert_eq!(label("$train.py:12 log"), "train.py:12 log");
    }
}
