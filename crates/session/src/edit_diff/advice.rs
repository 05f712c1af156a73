//! The diffs of what findings advise.

use analyses::Tables;
use analyses::code_site::CodeSite;
use rules::{Diagnosis, Fix};

use super::change::EVERY_N_STEPS;
use super::{Change, Diff, NoDiff, diff_for};

/// The diff of the first finding that has a certain one; otherwise why the first that names a line
/// has none.
pub fn first_diff(tables: &Tables, diagnosis: &Diagnosis) -> Result<Diff, NoDiff> {
    let mut why = None;
    for fix in diagnosis.causes.iter().flat_map(|it| &it.finding.fix) {
        match diff_of(tables, fix) {
            Some(Ok(diff)) => return Ok(diff),
            Some(Err(error)) => {
                why.get_or_insert(error);
            }
            None => (),
        }
    }
    let has_sites = !tables.get::<CodeSite>().is_empty();
    Err(why.unwrap_or(NoDiff::NoLine { has_sites }))
}

/// The diff of one edit; `None` where no line is known for it, or no source can show it.
pub fn diff_of(tables: &Tables, fix: &Fix) -> Option<Result<Diff, NoDiff>> {
    let site = fix.site.as_ref()?;
    let change = match fix.change {
        rules::Change::ParallelMap if site.kind == "dataset.interleave" => {
            Change::ParallelInterleave
        }
        rules::Change::ParallelMap => Change::ParallelMap,
        rules::Change::ParallelInterleave => Change::ParallelInterleave,
        rules::Change::Prefetch => Change::Prefetch,
        rules::Change::Cache => Change::Cache,
        rules::Change::CompileStep if site.kind == "keras.compile" => Change::NoRunEagerly,
        rules::Change::CompileStep if site.kind == "function" => Change::Jit,
        rules::Change::EveryNSteps if site.kind == "line" => {
            Change::EveryNSteps(fix.amount.unwrap_or(EVERY_N_STEPS))
        }
        rules::Change::RelaxShapes => Change::ReduceRetracing,
        rules::Change::LargerBatch => Change::LargerBatch(fix.amount),
        rules::Change::Float32 => Change::Float32,
        _ => return None,
    };
    Some(diff_for(tables, change, site))
}
