//! Lines of Python for findings: which function was busiest, and how to say where.

use std::collections::BTreeMap;

use analyses::Tables;
use analyses::code_site::{CodeSite, Doing, LoopLine, Site, fit_site, loop_lines};
use analyses::python_line::PythonLine;
use trace::Dur;

use crate::Evidence;

/// A function and its lines, the busiest first.
#[derive(Debug, PartialEq)]
pub struct Busiest<'a> {
    pub function: &'a str,
    /// Of the samples of this activity.
    pub share: f64,
    /// Rows of the table; at least one.
    pub lines: Vec<usize>,
}

/// With fewer samples a function may be named by chance.
/// Source: choice, a guess.
const FEWEST_SAMPLES: i64 = 5;

/// The function that held most of an activity, as far as samples can tell.
pub fn busiest<'a>(rows: &'a [PythonLine], activity: &str) -> Option<Busiest<'a>> {
    let mut functions: BTreeMap<(&str, &str), (i64, Vec<usize>)> = BTreeMap::new();
    let mut all = 0;
    for (at, row) in rows.iter().enumerate().filter(|it| it.1.activity == activity) {
        let sum = functions.entry((&row.file, &row.function)).or_default();
        sum.0 += row.samples;
        sum.1.push(at);
        all += row.samples;
    }
    if all < FEWEST_SAMPLES {
        return None;
    }
    let ((_, function), (samples, lines)) = functions.into_iter().max_by_key(|it| it.1.0)?;
    Some(Busiest { function, share: samples as f64 / all as f64, lines })
}

/// A line with less of the samples is not the one to change.
/// Source: choice, seven in ten.
const MOST: f64 = 0.7;

/// The line of the training loop that holds most of what the driving thread does, and which is not
/// the step itself.
pub fn line_of_loop(tables: &Tables, doing: Doing) -> Option<LoopLine> {
    let lines = loop_lines(tables, doing);
    let seen: i64 = lines.iter().map(|it| it.samples).sum();
    let first = lines.into_iter().find(|it| !it.is_step)?;
    (seen >= FEWEST_SAMPLES && first.share >= MOST).then_some(first)
}

/// The function that the training loop calls for nearly all of a step; otherwise the line on which
/// most of it is.
pub fn function_of_step(tables: &Tables) -> Option<Site> {
    let lines = loop_lines(tables, Doing::Anything);
    let seen: i64 = lines.iter().map(|it| it.samples).sum();
    let first = lines.into_iter().next().filter(|_| seen >= FEWEST_SAMPLES)?;
    Some(first.calls.filter(|_| first.share >= MOST).unwrap_or(first.site))
}

/// Where the training loop is: the user's own, or the call of `model.fit`.
pub fn place_of_loop(tables: &Tables) -> Option<Evidence> {
    let rows = tables.get::<CodeSite>();
    let own = rows.iter().rfind(|it| it.kind == "loop").cloned();
    let site = own.or_else(|| fit_site(tables))?;
    let at = rows.iter().position(|it| it.site == site.site);
    let text = format!("The training loop is at {}", site.place());
    Some(Evidence::text(text).rows("code_site", at.into_iter().collect()))
}

/// The sampled lines of a place in the user's code.
pub fn rows_at(tables: &Tables, site: &Site) -> Vec<usize> {
    let rows = tables.get::<PythonLine>();
    let is_there = |it: &PythonLine| it.file == site.file && it.line == Some(site.line);
    (0..rows.len()).filter(|&it| is_there(&rows[it])).collect()
}

/// The path before it is the user's own business.
pub fn file_name(path: &str) -> &str {
    let mut parts = path.rsplit(['/', '\\']);
    let name = parts.next().unwrap_or(path);
    match parts.next() {
        // Jupyter's kernel names a cell by a hash of its text, which says nothing to anybody.
        Some(folder) if folder.starts_with("ipykernel_") => "a notebook cell",
        _ => name,
    }
}

/// `train.py:12`, as far as it is known.
pub fn place(row: &PythonLine) -> String {
    let line = row.line.map(|it| format!(":{it}")).unwrap_or_default();
    format!("{}{line}", file_name(&row.file))
}

/// `train.py:12 in log(): 60 ms per step, most of it in dumps`.
pub fn line_in_words(row: &PythonLine) -> String {
    let time = match row.per_step_ps {
        Some(it) => format!("{} per step", Dur(it)),
        None => format!("{} samples", row.samples),
    };
    let calling = row.inside.as_ref().map(|it| format!(", most of it in {it}")).unwrap_or_default();
    format!("{} in {}: {time}{calling}", place(row), row.function)
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn files_are_named_as_people_know_them() {
        assert_eq!(file_name("/home/me/train.py"), "train.py");
        assert_eq!(file_name(r"C:\me\train.py"), "train.py");
        assert_eq!(file_name("train.py"), "train.py");
        assert_eq!(file_name("/tmp/ipykernel_4711/632161008.py"), "a notebook cell");
    }
}
