//! When a step was in a category: the instants that a column of `step_time` adds up.

use trace::TrackKind;

use super::{
    CATEGORIES, DeviceWalk, HostTimes, HostWork, StepTime, busy_devices, instants, subtract, within,
};
use crate::Tables;
use crate::span::{Span, union};
use crate::step::Step;

/// The instants of a row's step that belong to a category, in order; empty where there are none.
///
/// They add to the row's column, but for saving: which of the Python beside it belongs to it is
/// known only by its length.
pub fn when(tables: &Tables, row: &StepTime, category: &str) -> Vec<Span> {
    let trace = tables.trace();
    let steps = tables.get::<Step>();
    let times = tables.model::<HostTimes>();
    let step = steps.iter().find(|it| it.host == row.host && it.step == row.step);
    let host = trace.tracks_of(TrackKind::Host).find(|&it| trace.track_name(it) == row.host);
    let (Some(step), Some(host)) = (step, host) else { return Vec::new() };
    let Some(doing) = times.of(host) else { return Vec::new() };
    let window = step.span();
    let devices = busy_devices(trace, host);
    let device = devices.iter().find(|&&it| trace.track_name(it) == row.device);
    let mut walk;
    let of_host;
    let busy = match device {
        Some(&device) => {
            walk = DeviceWalk::new(trace, device);
            walk.within(window)
        }
        None => {
            of_host =
                tables.model::<HostWork>().on(trace, host).map(|it| subtract(&it, &doing.saving));
            &of_host
        }
    };
    let sets = instants(window, busy.each_ref().map(|it| within(it, window)), doing);
    let cut = |it: &[Span]| -> Vec<Span> {
        within(it, window).iter().map(|it| (it.0.max(window.0), it.1.min(window.1))).collect()
    };
    match CATEGORIES.iter().position(|it| it.0 == category).map(|at| sets.get(at)) {
        Some(Some(set)) => cut(set),
        // The last one is what none of the others has.
        Some(None) => subtract(&[window], &union(sets.iter().flat_map(|it| cut(it)).collect())),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::super::{CATEGORIES, StepTime};
    use super::when;
    use crate::Tables;
    use crate::span::total;

    #[test]
    fn instants_add_to_their_columns() {
        let pictures = [
            "
            host/python: train#1 0..95, IteratorGetNext 0..30, cuLaunchKernel 32..40, train#2 100..195
            gpu0/stream7: matmul 40..70, ncclAllReduce 60..90, MemcpyH2D 20..25
            gpu0/stream8: matmul 55..65
            ",
            "
            host/python: train#1 0..95, IteratorGetNext 0..30, train#2 100..195
            host/tf_Compute: MatMul:MatMul 30..80
            ",
        ];
        for picture in pictures {
            let tables = Tables::new(Arc::new(draw(picture)));
            let rows = tables.get::<StepTime>();
            assert!(!rows.is_empty(), "{picture}");
            for row in rows.iter() {
                for (category, column) in CATEGORIES {
                    let spans = when(&tables, row, category);
                    assert_eq!(total(&spans), column(row), "{category} of {picture}");
                }
            }
        }
    }

    #[test]
    fn python_is_between_calls() {
        let tables = Tables::new(Arc::new(draw(
            "
            host/python: train#1 0..95, IteratorGetNext 0..30, cuLaunchKernel 32..40, train#2 100..195
            gpu0/stream7: matmul 40..70
            ",
        )));
        let rows = tables.get::<StepTime>();
        let row = rows.first().expect("a step");
        let micros: Vec<(i64, i64)> = when(&tables, row, "python")
            .iter()
            .map(|it| (it.0 / 1_000_000, it.1 / 1_000_000))
            .collect();
        assert_eq!(micros, [(30, 32), (70, 100)]);
        assert_eq!(when(&tables, row, "no such category"), []);
    }
}
