//! One op takes most of the step.

use std::collections::{BTreeMap, HashSet};

use analyses::Tables;
use analyses::what_if::{OpsInStep, ops_in_step};
use trace::dialect;
use trace::{Dur, OpName};

use crate::dialect::Edit;
use crate::facts::{Facts, NO_STEPS, Op, facts, percent};
use crate::{Change, Evidence, Finding, Fix, Gain, Rule, Severity, Verdict};

rule! {
    /// One op takes most of the compute time.
    ///
    /// ## Evidence
    /// The op's time, with that of its gradient, against that of all ops, and the part of the
    /// step in which only it runs. Ops of an optimizer that writes the sparse gradient of an
    /// embedding table into a full table, and then updates all of its rows, count as one.
    ///
    /// ## Fix
    /// Ask what the op is for: a sort for a maximum, a concat for a view, a one-hot matrix
    /// product for a lookup have cheaper equals. Give an embedding table an optimizer that
    /// changes only the rows that were looked up. Else make the op's input smaller.
    ///
    /// ## When it is wrong
    /// A model that is one large matrix product is meant to be so. What a cheaper equal would
    /// cost cannot be known: the predicted range goes from half of the op's time to none of it.
    /// An optimizer that changes only some rows learns in another way than Adam.
    pub struct DominantOp = "dominant-op";
}

/// Moving, sorting and indexing serve the math: a third of the computing is too much for one.
/// Source: choice, a guess.
const TOO_MUCH: f64 = 0.30;
/// The math itself may well be mostly one layer; beyond this there is hardly another.
/// Source: choice, a guess.
const TOO_MUCH_MATH: f64 = 0.85;
/// A product with a one-hot matrix is a lookup, however it is written.
/// Source: choice, a guess.
const TOO_MUCH_ONE_HOT: f64 = 0.40;

/// An op that is more of the computing than this is the program itself.
/// Source: choice, a guess.
const NOTHING_ELSE: f64 = 0.97;

/// One product and its gradients are not more.
/// Source: choice, a product, its two gradients, and once more of all for a second model.
const SOME_LAYERS: f64 = 6.0;

/// Of the whole step, the op must be this part of what it must be of the computing.
/// Source: choice, a guess.
const OF_STEP: f64 = 0.7;

/// What is left of the op when a cheaper one takes its place: at worst, likely, at best.
/// Source: choice, a guess: what a cheaper op costs cannot be known.
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
        if let Some(found) = dense_update(tables, &facts, &ops) {
            return found;
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
        if of_compute < limit || of_compute * facts.share("compute") < limit * OF_STEP {
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
        // Where a name says only what kind of op it is, many runs of it are many layers.
        let is_kind = dialect::any(|it| it.is_math(&main.name));
        if is_kind && runs > SOME_LAYERS || facts.share_of(Dur(alone)) < limit * OF_STEP {
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
            .confidence(if is_math(main) {
                crate::confidence::RATHER
            } else {
                crate::confidence::STRONG
            })
            .evidence(Evidence::text(how_often).rows("op_time", rows))
            .evidence(Evidence::text(only).steps("compute", Facts::rows(tables)));
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

/// Ops that write a sparse gradient into a table of all rows.
const DENSIFIES: [&str; 3] = ["UnsortedSegmentSum", "ScatterNd", "TensorScatterAdd"];
/// Ops that look rows of a table up.
const LOOKS_UP: [&str; 4] = ["GatherV2", "ResourceGather", "Gather", "EmbeddingLookup"];

/// What is left of the update when only the rows that were looked up change, at worst, likely, at
/// best: at worst the table is still copied once.
/// Source: choice, from one look at Keras' Adagrad (0.45) and SGD (0.3) against its Adam, on a busy
/// machine and a table of 100,000 rows of which 1,280 are used.
const LEFT_OF_UPDATE: [f64; 3] = [0.45, 0.2, 0.02];

/// An optimizer that updates every row of an embedding table, although a batch looks up a few.
fn dense_update(tables: &Tables, facts: &Facts, ops: &[Op]) -> Option<Verdict> {
    let is_any = |op: &Op, types: &[&str]| types.contains(&op.op_type.as_str());
    let scope = |op: &Op| op.name.rsplit_once('/').map_or("", |it| it.0).to_owned();
    ops.iter().find(|it| is_any(it, &LOOKS_UP) && !is_gradient(&it.name))?;
    // A gradient that is summed up within the model's backward pass is another matter.
    let sums = ops.iter().filter(|it| is_any(it, &DENSIFIES) && !is_gradient(&it.name));
    let sum = sums.max_by_key(|it| it.own)?;
    let optimizer = scope(sum);
    let group: Vec<&Op> = ops.iter().filter(|it| scope(it) == optimizer).collect();
    // An optimizer writes variables; a layer of the model that sums segments does not.
    if optimizer.is_empty() || !group.iter().any(|it| writes_variable(&it.op_type)) {
        return None;
    }
    let of_compute: f64 = group.iter().map(|it| it.share).sum();
    let names: HashSet<&str> = group.iter().map(|it| it.name.as_str()).collect();
    let trace = tables.trace();
    let is_of_group = |text: &str| OpName::parse(text).is_some_and(|it| names.contains(it.name));
    let events = trace.strings.iter().filter(|it| is_of_group(it.1)).map(|it| it.0).collect();
    let alone = ops_in_step(tables, &events)?.alone_ps;
    if of_compute < TOO_MUCH || facts.share_of(Dur(alone)) < TOO_MUCH {
        return None;
    }
    let label = optimizer.trim_start_matches("StatefulPartitionedCall/");
    let cost = Dur(alone);
    let new = LEFT_OF_UPDATE.map(|left| facts.step.0 - (alone as f64 * (1.0 - left)) as i64);
    let title = format!(
        "The optimizer ({label}) updates every row of an embedding table, not only those looked \
         up: {}",
        facts.per_step(cost)
    );
    let rows: Vec<usize> = group.iter().map(|it| it.row).collect();
    let text = format!(
        "{} writes the sparse gradient into a full table; the optimizer's {} ops are {} of the \
         compute time",
        sum.label(),
        group.len(),
        percent(of_compute)
    );
    let finding = Finding::new(title, cost, facts.step)
        .headline("is spent updating an embedding table")
        .evidence(Evidence::text(text).rows("op_time", rows))
        .fix(
            Fix::new(
                Change::SparseUpdate,
                "Give the embedding table an optimizer that changes only the rows looked up",
            )
            .edit(Edit::SparseUpdate)
            .gives(Some(match facts.on_device {
                true => Gain::of_range(facts.step.0, new),
                // The other ops run undisturbed then, as after any large op.
                false => Gain::on_host(facts.step.0, new),
            })),
        );
    Some(finding.found())
}

fn writes_variable(op_type: &str) -> bool {
    op_type.starts_with("Assign") || op_type.contains("ResourceApply")
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
        op_type => is_any(op_type, &MATH) || dialect::any(|it| it.is_math(op_type)),
    }
}

/// A cheaper way to the same result, where one is known.
fn advice(op_type: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|it| op_type.contains(it));
    Some(if has(&["Concat", "concatenate", "Pack", "Tile", "::cat", "::stack"]) {
        "Keep the parts in a list, or write into one buffer, instead of joining them every step"
    } else if has(&["Transpose", "transpose", "Reshape", "copy", "Slice", "slice", "contiguous"]) {
        "Store the data in the order it is read, so that nothing needs to be moved"
    } else if has(&["TopK", "Sort", "sort", "Unique", "topk", "unique"]) {
        "Use a maximum, a partial sort or buckets instead of a full sort"
    } else if has(&["Gather", "gather", "Scatter", "scatter", "UnsortedSegment", "::index"]) {
        "Gather fewer, larger rows, and sort the indices"
    } else if has(&["MatMul", "dot", "Einsum", "::mm", "::addmm", "::matmul", "::bmm"]) {
        "If one side is one-hot or sparse, look up its rows instead of multiplying"
    } else if has(&[
        "Svd",
        "Eig",
        "Qr",
        "MatrixInverse",
        "MatrixSquareRoot",
        "MatrixLogarithm",
        "::linalg",
    ]) {
        "Replace the full decomposition with a few power iterations, or do it every N steps"
    } else if has(&["Cumsum", "cumsum", "cumprod", "scan", "While", "while"]) {
        "Compute it in blocks, or by a closed form, instead of element by element"
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::{DominantOp, forward};
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

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
    fn a_decomposition_in_every_step_has_a_cheaper_equal() {
        let found = finding(&DominantOp, &picture("Svd"));
        assert_eq!(found.severity, Severity::High);
        assert!(found.fix[0].text.contains("power iterations"), "{:?}", found.fix);
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

    /// Steps that look rows up, multiply, and update a table in the scope `adam`.
    fn with_update(sums: &str) -> String {
        let steps = (0..4).map(|it| {
            format!("train#{it} {0}..{1}, EagerExecute {0}..{1}", it * 100, it * 100 + 99)
        });
        let ops = (0..4).map(|it| {
            let at = it * 100;
            let op = |name: &str, from: i64, to: i64| format!("{name} {}..{}", at + from, at + to);
            [
                op("embed/GatherV2:GatherV2", 1, 3),
                op("dense/MatMul:MatMul", 3, 20),
                op(&format!("adam/{sums}:{sums}"), 20, 50),
                op("adam/Sqrt:Sqrt", 50, 70),
                op("adam/AssignSubVariableOp:AssignSubVariableOp", 70, 95),
            ]
            .join(", ")
        });
        let [steps, ops] = [steps.collect::<Vec<_>>(), ops.collect()].map(|it| it.join(", "));
        format!("host/python: {steps}\nhost/tf_Compute: {ops}")
    }

    #[test]
    fn an_optimizer_that_updates_every_row_is_found() {
        let found = finding(&DominantOp, &with_update("UnsortedSegmentSum"));
        assert!(
            found.title.starts_with("The optimizer (adam) updates every row of an embedding table"),
            "{}",
            found.title
        );
        let gain = found.gain.unwrap();
        let range = [gain.low, gain.speedup, gain.high].map(|it| (it * 10.0).round() as i64);
        assert_eq!(range, [15, 25, 87], "{gain:?}");
    }

    #[test]
    fn an_optimizer_of_dense_weights_has_nothing_to_leave_out() {
        let found = finding(&DominantOp, &with_update("Square"));
        assert!(found.title.starts_with("One op, adam/Square"), "{}", found.title);
        assert_eq!((found.severity, found.gain), (Severity::Low, None));
    }

    #[test]
    fn gradients_belong_to_their_op() {
        assert_eq!(forward("gradient_tape/a/matmul/MatMul_1"), "a/matmul");
        assert_eq!(forward("a/matmul"), "a/matmul");
    }
}
