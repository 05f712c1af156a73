//! Sets of half-open intervals in picoseconds: sorted, disjoint, none empty.

/// From, to.
pub type Span = (i64, i64);

/// Adds an interval to a set, into the last one where it touches it: mostly they come in order.
/// Where this one does not, `false`, and only the [`union`] of all is a set again.
pub fn add(set: &mut Vec<Span>, span: Span) -> bool {
    match set.last_mut() {
        _ if span.0 >= span.1 => return true,
        Some(last) if span.0 < last.0 => {
            set.push(span);
            return false;
        }
        Some(last) if span.0 <= last.1 => last.1 = last.1.max(span.1),
        _ => set.push(span),
    }
    true
}

/// Whether a time is in one of them.
pub fn holds(set: &[Span], time: i64) -> bool {
    let after = set.partition_point(|it| it.0 <= time);
    after.checked_sub(1).is_some_and(|it| set[it].1 > time)
}

/// The union of intervals in any order.
pub fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|it| it.0 < it.1);
    if !spans.is_sorted() {
        spans.sort_unstable();
    }
    let mut kept = 0;
    for at in 1..spans.len() {
        let (from, to) = spans[at];
        if from <= spans[kept].1 {
            spans[kept].1 = spans[kept].1.max(to);
        } else {
            kept += 1;
            spans[kept] = (from, to);
        }
    }
    spans.truncate(kept + 1);
    spans
}

pub fn total(spans: &[Span]) -> i64 {
    spans.iter().fold(0_i64, |sum, it| sum.saturating_add(it.1 - it.0))
}

/// Those spans of a set that reach into `window`.
pub fn within(set: &[Span], window: Span) -> &[Span] {
    let set = &set[set.partition_point(|it| it.1 <= window.0)..];
    &set[..set.partition_point(|it| it.0 < window.1)]
}

/// How much of `window` the set covers.
pub fn covered(window: Span, set: &[Span]) -> i64 {
    let inside = within(set, window).iter();
    inside.fold(0, |sum, it| sum + (it.1.min(window.1) - it.0.max(window.0)))
}

/// The part of `a` outside `b`.
pub fn subtract(a: &[Span], b: &[Span]) -> Vec<Span> {
    let mut out = Vec::new();
    let mut next = 0;
    for &(mut from, to) in a {
        while next < b.len() && b[next].1 <= from {
            next += 1;
        }
        let mut at = next;
        while at < b.len() && b[at].0 < to {
            if b[at].0 > from {
                out.push((from, b[at].0));
            }
            from = from.max(b[at].1);
            at += 1;
        }
        if from < to {
            out.push((from, to));
        }
    }
    out
}

/// The part that both cover.
pub fn intersect(a: &[Span], b: &[Span]) -> Vec<Span> {
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (from, to) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
        if from < to {
            out.push((from, to));
        }
        if a[i].1 < b[j].1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{add, covered, intersect, subtract, total, union, within};

    #[test]
    fn sets_of_intervals() {
        let a = union(vec![(5, 9), (0, 3), (2, 4), (9, 10), (7, 7)]);
        assert_eq!(a, [(0, 4), (5, 10)]);
        assert_eq!(total(&a), 9);
        assert_eq!(covered((3, 6), &a), 2);
        assert_eq!(within(&a, (4, 6)), [(5, 10)]);
        assert_eq!(subtract(&a, &[(1, 2), (3, 6), (9, 20)]), [(0, 1), (2, 3), (6, 9)]);
        assert_eq!(intersect(&a, &[(1, 2), (3, 6), (9, 20)]), [(1, 2), (3, 4), (5, 6), (9, 10)]);
        assert_eq!(union(Vec::new()), []);
    }

    #[test]
    fn adding_in_order_and_not() {
        let mut set = Vec::new();
        for span in [(0, 3), (3, 4), (2, 3), (6, 6), (6, 9)] {
            assert!(add(&mut set, span));
        }
        assert_eq!(set, [(0, 4), (6, 9)]);
        assert!(!add(&mut set, (1, 7)));
        assert_eq!(union(set), [(0, 9)]);
    }
}
