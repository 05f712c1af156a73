//! Adds up ops by the scopes in their names: the model as a tree of its layers.
//!
//! ```text
//! model/dense/MatMul  3 ms        /              10 ms
//! model/dense/Add     1 ms   ─▶     model        10 ms
//! model/Softmax       6 ms            dense       4 ms
//! ```
//!
//! What has no scopes is left out: stages of tf.data, ops known only from a compiled program,
//! kernels of which no op is known.

use hashbrown::HashMap;
use trace::OpFamily;

use crate::op_time::OpTime;
use crate::{Analysis, Tables};

table! {
    /// The time of the ops in each name scope, as TensorFlow and JAX build them from layers,
    /// modules and functions.
    ///
    /// Times of the host are self times of ops, so no moment of a thread counts twice.
    pub struct ScopeTime = "scope_time" {
        /// The scope's path, as model/dense; / for all ops.
        scope: String,
        /// The scope around it; null for /.
        parent: Option<String>,
        /// How many scopes are around it; 0 for /.
        depth: i64,
        /// How many different ops lie in it, those of inner scopes included.
        n_ops: i64,
        /// How often ops in it ran on the host, those of inner scopes included.
        count: i64,
        /// Host time of all ops in it, those of inner scopes included.
        total_ps: i64,
        /// Host time of the ops directly in it.
        self_ps: i64,
        /// Device time of all ops in it, those of inner scopes included; null without a device.
        device_ps: Option<i64>,
    }
}

/// Whether the names of such ops have scopes in them.
fn has_scopes(op: &OpTime) -> bool {
    OpFamily::of_name(op.family).is_some_and(OpFamily::has_scopes)
}

const TOP: &str = "/";

impl Analysis for ScopeTime {
    fn run(tables: &Tables) -> Vec<ScopeTime> {
        let ops = tables.get::<OpTime>();
        let ops = || ops.iter().filter(|it| has_scopes(it));
        // A host op knows the device work it started: only ops without one bring their own.
        let mut on_host: Vec<&str> =
            ops().filter(|it| it.side == "host").map(|it| it.name.as_str()).collect();
        on_host.sort_unstable();
        let has_device = ops().any(|it| it.side == "device" || it.device_ps.is_some());

        let mut rows: HashMap<&str, ScopeTime> = HashMap::new();
        for op in ops() {
            let host = op.side == "host";
            let known = !host && on_host.binary_search(&op.name.as_str()).is_ok();
            let device_ps = match op.device_ps {
                Some(started) => started,
                None if host || known => 0,
                None => op.self_ps,
            };
            let innermost = at_most_deep(&op.scope);
            for (scope, parent, depth) in scopes(innermost) {
                let row = rows.entry(scope).or_insert_with(|| ScopeTime {
                    scope: scope.to_owned(),
                    parent: parent.map(str::to_owned),
                    depth,
                    n_ops: 0,
                    count: 0,
                    total_ps: 0,
                    self_ps: 0,
                    device_ps: has_device.then_some(0),
                });
                row.n_ops += i64::from(!known);
                row.device_ps = row.device_ps.map(|it| it.saturating_add(device_ps));
                if host {
                    row.count += op.count;
                    row.total_ps = row.total_ps.saturating_add(op.self_ps);
                    let directly = scope == innermost || innermost.is_empty();
                    if directly {
                        row.self_ps = row.self_ps.saturating_add(op.self_ps);
                    }
                }
            }
        }
        let mut rows: Vec<ScopeTime> = rows.into_values().collect();
        // Each scope right before those in it: as plain text, `a-b` comes between `a` and `a/b`.
        rows.sort_by_cached_key(|it| (it.depth > 0).then(|| it.scope.replace('/', "\0")));
        rows
    }
}

/// No model nests deeper. A row holds its whole path, so a path of slashes alone would come to
/// its length squared; ops in deeper scopes are counted in the deepest one shown.
/// Source: choice, a bound on memory.
const DEEPEST: usize = 64;

pub(crate) fn at_most_deep(scope: &str) -> &str {
    scope.match_indices('/').nth(DEEPEST - 1).map_or(scope, |(end, _)| &scope[..end])
}

/// The scope itself and all around it: path, the one around, depth.
pub(crate) fn scopes(scope: &str) -> impl Iterator<Item = (&str, Option<&str>, i64)> {
    let inner = (!scope.is_empty()).then_some(scope);
    let paths = std::iter::successors(inner, |it| it.rsplit_once('/').map(|it| it.0));
    let paths = paths.map(|it| {
        let parent = it.rsplit_once('/').map_or(TOP, |it| it.0);
        (it, Some(parent), it.matches('/').count() as i64 + 1)
    });
    paths.chain([(TOP, None, 0)])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::ScopeTime;
    use crate::Tables;

    /// Scope; ops, runs, total and self time in µs; device time in µs.
    fn check(picture: &str, expected: &[&str]) {
        let us = |ps: i64| ps / 1_000_000;
        let tables = Tables::new(Arc::new(draw(picture)));
        let found: Vec<String> = tables
            .get::<ScopeTime>()
            .iter()
            .map(|it| {
                let device = it.device_ps.map_or("-".to_owned(), |it| us(it).to_string());
                let indent = "  ".repeat(it.depth as usize);
                let (total, own) = (us(it.total_ps), us(it.self_ps));
                let (scope, n_ops, count) = (&it.scope, it.n_ops, it.count);
                format!("{indent}{scope}: {n_ops} ops {count}x {total} {own} {device}")
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn scopes_hold_the_scopes_in_them() {
        check(
            "
            host/t: model/dense/MatMul:MatMul 0..3, model/dense/Add:Add 3..4
            host/t: model/Softmax:Softmax 4..10, x-y/Cast:Cast 10..11, Assign:Assign 11..13
            ",
            &[
                "/: 5 ops 5x 13 2 -",
                "  model: 3 ops 3x 10 6 -",
                "    model/dense: 2 ops 2x 4 4 -",
                "  x-y: 1 ops 1x 1 1 -",
            ],
        );
    }

    #[test]
    fn ops_inside_ops_count_once() {
        check(
            "host/t: a/While:While 0..100, a/b/MatMul:MatMul 20..50",
            &["/: 2 ops 2x 100 0 -", "  a: 2 ops 2x 100 70 -", "    a/b: 1 ops 1x 30 30 -"],
        );
    }

    #[test]
    fn scopes_know_their_device_time() {
        check(
            "
            host/t: a/MatMul:MatMul 0..10, cuLaunchKernel@1 2..4
            gpu0/stream7: gemm@1 30..70
            ",
            &["/: 1 ops 1x 10 0 40", "  a: 1 ops 1x 10 10 40"],
        );
    }

    #[test]
    fn without_ops_there_are_no_scopes() {
        check("host/t: Iterator::Root::Map 0..30, train 0..40", &[]);
    }
}
