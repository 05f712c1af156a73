//! Writes edits as a unified diff that `git apply` and `patch -p1` take.

use std::fmt::Write as _;

use super::call::Edit;
use super::source::Source;

/// Lines around a change.
const CONTEXT: usize = 3;

/// Lines that are replaced by others; from 0, one behind the last.
#[derive(Debug)]
struct Region {
    from: usize,
    until: usize,
    new: Vec<String>,
}

/// The text with all edits made. They must not overlap.
pub(super) fn apply(text: &str, edits: &[Edit]) -> String {
    let mut new = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for edit in edits {
        new.push_str(&text[at..edit.at.start]);
        new.push_str(&edit.new);
        at = edit.at.end;
    }
    new.push_str(&text[at..]);
    new
}

/// `path` has slashes, and is relative to where the diff is applied.
pub(super) fn diff(source: &Source, edits: &[Edit], path: &str) -> String {
    let old: Vec<&str> = source.text.split_inclusive('\n').collect();
    let regions = regions(source, edits);
    let mut out = format!("--- a/{path}\n+++ b/{path}\n");
    let mut shift = 0;
    let mut at = 0;
    while at < regions.len() {
        let mut last = at;
        while regions.get(last + 1).is_some_and(|it| it.from <= regions[last].until + 2 * CONTEXT) {
            last += 1;
        }
        let from = regions[at].from.saturating_sub(CONTEXT);
        let until = (regions[last].until + CONTEXT).min(old.len());
        let mut body = String::new();
        let mut line = from;
        let n_old = until - from;
        let mut n_new = n_old;
        for region in &regions[at..=last] {
            old[line..region.from].iter().for_each(|it| push(&mut body, ' ', it));
            old[region.from..region.until].iter().for_each(|it| push(&mut body, '-', it));
            region.new.iter().for_each(|it| push(&mut body, '+', it));
            n_new = n_new + region.new.len() - (region.until - region.from);
            line = region.until;
        }
        old[line..until].iter().for_each(|it| push(&mut body, ' ', it));
        // Of no lines the one before them is named.
        let first = |n: usize, from: usize| if n == 0 { from } else { from + 1 };
        let new_from = from.saturating_add_signed(shift);
        let _ = writeln!(
            out,
            "@@ -{},{n_old} +{},{n_new} @@",
            first(n_old, from),
            first(n_new, new_from)
        );
        out.push_str(&body);
        shift += n_new as isize - n_old as isize;
        at = last + 1;
    }
    out
}

fn push(out: &mut String, sign: char, line: &str) {
    out.push(sign);
    out.push_str(line);
    if !line.ends_with('\n') {
        out.push_str("\n\\ No newline at end of file\n");
    }
}

/// Edits of the same or of neighbouring lines are one.
fn regions(source: &Source, edits: &[Edit]) -> Vec<Region> {
    let n_lines = source.lines.len();
    let mut spans: Vec<(usize, usize, Vec<&Edit>)> = Vec::new();
    for edit in edits {
        let from = source.line_of(edit.at.start) - 1;
        let is_whole_lines = edit.at.end > edit.at.start && source.lines.contains(&edit.at.end);
        let until = if is_whole_lines && source.lines.contains(&edit.at.start) {
            source.line_of(edit.at.end) - 1
        } else {
            source.line_of(edit.at.end)
        };
        let until = until.min(n_lines);
        match spans.last_mut() {
            Some(it) if from <= it.1 => {
                it.1 = it.1.max(until);
                it.2.push(edit);
            }
            _ => spans.push((from, until, vec![edit])),
        }
    }
    let byte = |line: usize| source.lines.get(line).copied().unwrap_or(source.text.len());
    spans
        .into_iter()
        .map(|(from, until, edits)| {
            let (start, end) = (byte(from), byte(until));
            let own: Vec<Edit> = edits
                .into_iter()
                .map(|it| Edit { at: it.at.start - start..it.at.end - start, new: it.new.clone() })
                .collect();
            let new = apply(&source.text[start..end], &own);
            trimmed(source, from, until, new.split_inclusive('\n').map(str::to_owned).collect())
        })
        .filter(|it| it.from < it.until || !it.new.is_empty())
        .collect()
}

/// Without the lines at its ends that stay as they are.
fn trimmed(source: &Source, mut from: usize, mut until: usize, mut new: Vec<String>) -> Region {
    let old: Vec<&str> = source.text.split_inclusive('\n').collect();
    while from < until && new.first().is_some_and(|it| it == old[from]) {
        new.remove(0);
        from += 1;
    }
    while from < until && new.last().is_some_and(|it| it == old[until - 1]) {
        new.pop();
        until -= 1;
    }
    Region { from, until, new }
}
