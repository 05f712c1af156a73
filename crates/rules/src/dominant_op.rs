//! One op takes most of the step.

use std::collections::BTreeMap;

use analyses::Tables;
use analyses::what_if::{OpsInStep, ops_in_step};
use trace::{Dur, OpName};

use crate::facts::{Facts, NO_STEPS, Op, facts, percent};
use crate::{Change, Evidence, Finding, Fix, Gain, Rule, Severity, Verdict};

rule! {
    /// One op takes most of the compute time.
    ///
    /// ## Evidence
    /// The op's time, with that of its gradient, against that of all ops, and the part of the
    /// step in which only it runs.
    ///
    /// ## Fix
    /// Ask what the op is for: a sort for a maximum, a concat for a view, a one-hot matrix
    /// product for a lookup have cheaper equals. Else make its input smaller.
    ///
    /// ## When it is wrong
    /// A model that is one large matrix product is meant to be so. What a cheaper equal would
    /// cost cannot be known: the predicted range goes from half of the op's time to none of it.
    pub struct DominantOp = "dominant-op";
}

/// Moving, sorting and indexing serve the math: a third of the computing is too much for one.
const TOO_MUCH: f64 = 0.30;
/// The math itself may well be mostly one layer; beyond this there is hardly another.
const TOO_MUCH_MATH: f64 = 0.85;
/// A product with a one-hot matrix is a lookup, however it is written.
const TOO_MUCH_ONE_HOT: f64 = 0.40;

const NOTHING_ELSE: f64 = 0.97;

/// What is left of the op when a cheaper one takes its place: at worst, likely, at best.
const LEFT: [f64; 3] = [0.5, 0.05, 0.0];

impl Rule for DominantOp {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let ops = Op::all(tables);
        if ops.is_empty() {
            return Verdict::unknown("no ops in this profile");
        }
        let mut groups: BTreeMap<&str, Vec<&Op>> = BTreeMap::new();
        for op in &ops {
            groups.entry(forward(&op.name)).or_default().push(op);
        }
        let share = |it: &[&Op]| it.iter().map(|op| op.share).sum::<f64>();
        let largest = groups.iter().max_by(|a, b| share(a.1).total_cmp(&share(b.1)));
        let Some((&name, group)) = largest else { return Verdict::Clear };
        let main = group[0];
        // Gradients of an op whose scope is its own: `gradient_tape/sort/ScatterNd` of `sort/TopKV2`.
        let scope = name.rsplit_once('/').map_or("", |it| it.0);
        let is_of_group = |op: &str| forward(op) == name || is_gradient(op) && forward(op) == scope;
        let group: Vec<&Op> = ops.iter().filter(|it| is_of_group(&it.name)).collect();
        let group = group.as_slice();
        let of_compute = share(group);
        let one_hot = |it: &Op| it.op_type == "OneHot" && it.name.starts_with(scope);
        let limit = match is_math(main) {
            true if !scope.is_empty() && ops.iter().any(one_hot) => TOO_MUCH_ONE_HOT,
            true => TOO_MUCH_MATH,
            false => TOO_MUCH,
        };
        // A program that is one product, or whose ops have one name, has no op that stands out.
        if is_math(main) && of_compute > NOTHING_ELSE {
            return Verdict::Clear;
        }
        if of_compute < limit || of_compute * facts.share("compute") < limit * 0.7 {
            return Verdict::Clear;
        }
        let trace = tables.trace();
        let is_event_of_group = |text: &str| match OpName::parse(text) {
            Some(op) => is_of_group(op.name),
            None => text == name,
        };
        let names = trace.strings.iter().filter(|it| is_event_of_group(it.1));
        let names = names.map(|it| it.0).collect();
        // Ops of the input pipeline are not the step's: they never run in its own time.
        let Some(OpsInStep { alone_ps: alone, runs }) = ops_in_step(tables, &names) else {
            return Verdict::Clear;
        };
        if facts.share_of(Dur(alone)) < limit * 0.7 {
            return Verdict::Clear;
        }
        let step = facts.step.0;
        let new = LEFT.map(|left| step - (alone as f64 * (1.0 - left)) as i64);
        let gain = (alone > 0).then(|| match facts.on_device {
            true => Gain {
                low: Gain::of_times(step, new[0]).low,
                speedup: Gain::of_times(step, new[1]).speedup,
                high: Gain::of_times(step, new[2]).high,
            },
            false => Gain::on_host(step, new),
        });
        let gradient = if group.len() > 1 { " and its gradient" } else { "" };
        let title = format!(
            "One op, {}{gradient}, is {} of the compute time",
            main.label(),
            percent(of_compute)
        );
        let cost = Dur((facts.of("compute").0 as f64 * of_compute) as i64);
        let rows: Vec<usize> = group.iter().map(|it| it.row).collect();
        let times = match runs.round() {
            n if n > 1.0 => format!("{n:.0} times per step"),
            _ => "once per step".to_owned(),
        };
        let how_often = format!("It runs {times} ({} each)", main.each());
        let only = format!("For {} no other op computes", facts.per_step(Dur(alone)));
        let finding = Finding::new(title, cost, facts.step)
            .confidence(if is_math(main) { 0.6 } else { 0.85 })
            .evidence(Evidence::text(how_often).rows("op_time", rows))
            .evidence(Evidence::text(only).rows("step_time", Facts::rows(tables)));
        match advice(&main.op_type) {
            Some(it) => finding.fix(Fix::new(Change::CheaperOp, it).gives(gain)),
            // Where no cheaper equal is known, it may well be what the model is for.
            None => finding.severity(Severity::Low).fix(
                Fix::new(Change::CheaperOp, "Check that it needs all of its input, in every step")
                    .untold("no cheaper op with the same result is known for it"),
            ),
        }
        .found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is spent in one op")
    }
}

/// The forward op that an op belongs to: `gradient_tape/a/matmul/MatMul_1` belongs to `a/matmul`.
fn forward(name: &str) -> &str {
    let name = name.trim_start_matches("StatefulPartitionedCall/");
    match name.strip_prefix("gradient_tape/") {
        Some(rest) => rest.rsplit_once('/').map_or(rest, |it| it.0),
        None => name,
    }
}

fn is_gradient(name: &str) -> bool {
    name.trim_start_matches("StatefulPartitionedCall/").starts_with("gradient_tape/")
}

/// Ops that do what a model is for. A kernel of which only the name is known counts as such
/// unless the name says that it moves or orders data.
fn is_math(op: &Op) -> bool {
    const MATH: [&str; 11] = [
        "MatMul",
        "Conv",
        "Einsum",
        "dot",
        "conv",
        "gemm",
        "fusion",
        "Attention",
        "custom-call",
        "Fused",
        "LSTM",
    ];
    const MOVES: [&str; 8] =
        ["copy", "transpose", "concat", "sort", "gather", "scatter", "slice", "topk"];
    let is_any = |text: &str, words: &[&str]| words.iter().any(|it| text.contains(it));
    match op.op_type.as_str() {
        "" => !is_any(&op.name.to_ascii_lowercase(), &MOVES),
        op_type => is_any(op_type, &MATH),
    }
}

/// A cheaper way to the same result, where one is known.
fn advice(op_type: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|it| op_type.contains(it));
    Some(if has(&["Concat", "concatenate", "Pack", "Tile"]) {
        "Keep the parts in a list, or write into one buffer, instead of joining them every step"
    } else if has(&["Transpose", "transpose", "Reshape", "copy", "Slice", "slice", "StridedSlice"])
    {
        "Store the data in the order it is read, so that nothing needs to be moved"
    } else if has(&["TopK", "Sort", "sort", "Unique"]) {
        "Use a maximum, a partial sort or buckets instead of a full sort"
    } else if has(&["Gather", "gather", "Scatter", "scatter", "UnsortedSegment"]) {
        "Gather fewer, larger rows, and sort the indices"
    } else if has(&["MatMul", "dot", "Einsum"]) {
        "If one side is one-hot or sparse, look up its rows (tf.gather) instead of multiplying"
    } else if has(&["Cumsum", "cumsum", "scan", "While", "while"]) {
        "Compute it in blocks, or by a closed form, instead of element by element"
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::{DominantOp, forward};
    use crate::Verdict;
    use crate::testing::{finding, missing, verdict};

    fn picture(op: &str) -> String {
        let mut text = "host/python: ".to_owned();
        for step in 0..4 {
            let at = step * 100;
            text += &format!("train#{step} {at}..{}, EagerExecute {at}..{}, ", at + 100, at + 99);
        }
        text += "x 0..1\nhost/tf_Compute: ";
        for step in 0..4 {
            let at = step * 100;
            text += &format!(
                "model/join:{op} {}..{}, model/dense/MatMul:MatMul {}..{}, ",
                at + 1,
                at + 55,
                at + 56,
                at + 98
            );
        }
        text + "x:Relu 0..1"
    }

    #[test]
    fn an_op_that_only_moves_data_is_found() {
        let found = finding(&DominantOp, &picture("ConcatV2"));
        assert!(
            found.title.starts_with("One op, model/join (ConcatV2), is 56%"),
            "{}",
            found.title
        );
        let gain = found.gain.unwrap();
        assert!(gain.low < 1.4 && gain.speedup > 1.9 && gain.high > 2.1, "{gain:?}");
    }

    #[test]
    fn the_same_share_of_math_is_clear() {
        assert_eq!(verdict(&DominantOp, &picture("Conv2D")), Verdict::Clear);
    }

    #[test]
    fn without_ops_it_cannot_know() {
        let picture = "host/python: train#1 0..9, train#2 10..19, train#3 20..29";
        assert_eq!(missing(&DominantOp, picture), "no ops in this profile");
    }

    #[test]
    fn gradients_belong_to_their_op() {
        assert_eq!(forward("gradient_tape/a/matmul/MatMul_1"), "a/matmul");
        assert_eq!(forward("a/matmul"), "a/matmul");
    }
}
