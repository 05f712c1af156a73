//! Which change of which line a finding advises.
//!
//! Rules do not say that yet; until they do, it follows from a finding's rule and evidence.

use analyses::Tables;
use analyses::code_site::{Site, compile_site, last_stage_site, site_of_function, site_of_stage};
use analyses::compile::Compile;
use analyses::input_stage::pipeline::Pipeline;
use rules::{Diagnosis, Finding};

use super::{Diff, NoDiff, diff_for};

/// A change of a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    pub change: &'static str,
    pub site: Site,
}

/// The diff of the first finding that has a certain one; otherwise why the first that has an advice
/// has none.
pub fn first_diff(tables: &Tables, diagnosis: &Diagnosis) -> Result<Diff, NoDiff> {
    let mut why = None;
    for cause in &diagnosis.causes {
        let Some(advice) = advice(tables, cause.rule, &cause.finding) else { continue };
        match diff_for(tables, advice.change, &advice.site) {
            Ok(diff) => return Ok(diff),
            Err(error) => {
                why.get_or_insert(error);
            }
        }
    }
    Err(why.unwrap_or(NoDiff::NoLine {
        has_sites: !tables.get::<analyses::code_site::CodeSite>().is_empty(),
    }))
}

/// What to change where, if that is known.
pub fn advice(tables: &Tables, rule: &str, finding: &Finding) -> Option<Advice> {
    let of_stage = || {
        let row = row_of(finding, "input_stage")?;
        site_of_stage(tables, tables.model::<Pipeline>().stages.get(row)?)
    };
    let (change, site) = match rule {
        "input-serial-map" => {
            let site = of_stage()?;
            match site.kind.as_str() {
                "dataset.map" => ("parallel-map", site),
                "dataset.interleave" => ("parallel-interleave", site),
                _ => return None,
            }
        }
        "input-no-prefetch" => ("prefetch", last_stage_site(tables)?),
        "retracing" => {
            let rows = tables.get::<Compile>();
            let function = rows.get(row_of(finding, "compile")?)?.function.as_deref()?;
            ("reduce-retracing", site_of_function(tables, function)?)
        }
        "eager-ops" => {
            let site = compile_site(tables).filter(|it| it.arg("run_eagerly") == Some("True"))?;
            ("no-run-eagerly", site)
        }
        "small-batch" => {
            let pipeline = tables.model::<Pipeline>();
            let sites = pipeline.stages.iter().filter_map(|it| site_of_stage(tables, it));
            let mut batches = sites.filter(|it| it.kind == "dataset.batch");
            ("larger-batch", batches.next()?)
        }
        _ => return None,
    };
    Some(Advice { change, site })
}

/// The row of this table that a finding rests on.
fn row_of(finding: &Finding, table: &str) -> Option<usize> {
    let of_table = finding.evidence.iter().filter(|it| it.table == Some(table));
    of_table.filter_map(|it| it.rows.first()).next().copied()
}
