//! What is asked about a drawn trace, and the answers.

use session::timeline::{Histogram, Search, TimelineError};
use trace::testing::draw;
use trace::{EdgeKind, EventId, Time, TraceBuilder, TrackId, TrackKind};

use crate::timeline_of;

const US: i64 = 1_000_000;

const RUN: &str = "
    host/main: train#1 0..100, launch@1 10..20, train#2 100..190, launch@2 110..120, \
               train#3 190..290, launch@3 200..210
    gpu0/stream: matmul@1 20..60, matmul@2 120..180, Add 175..178, matmul@3 210..260
";

#[test]
fn the_overview_tells_tracks_and_steps() {
    let (_, timeline) = timeline_of(draw(RUN));
    let overview = timeline.overview();
    assert_eq!((overview.start_ps, overview.end_ps), (0, 290 * US));
    let tracks: Vec<_> =
        overview.tracks.iter().map(|it| (it.name.as_str(), it.lanes, it.driving)).collect();
    let expected = [
        ("drawn", 0, false),
        ("host", 0, false),
        ("main", 2, true),
        ("gpu0", 0, false),
        ("stream", 2, false),
    ];
    assert_eq!(tracks, expected);
    let steps: Vec<_> =
        overview.steps.iter().map(|it| (it.host, it.step, it.dur_ps / US)).collect();
    assert_eq!(steps, [(TrackId(0), 0, 100), (TrackId(0), 1, 90), (TrackId(0), 2, 100)]);
    let counts: Vec<_> = overview.steps.iter().filter(|it| it.counts).collect();
    let typical = overview.steps[overview.typical_step.unwrap()];
    assert!(counts.is_empty() || typical.counts);
    let kernel = overview.kinds.iter().find(|it| it.name == "kernel");
    assert_eq!(kernel.and_then(|it| it.category), Some("compute"));
}

#[test]
fn an_event_knows_its_surroundings() {
    let (tables, timeline) = timeline_of(draw(RUN));
    let named = |name: &str| {
        let rows = 0..tables.trace().events.len() as u32;
        rows.map(EventId).filter(|it| tables.trace().name(*it) == name).collect::<Vec<_>>()
    };
    let (launch, matmul) = (named("launch")[1], named("matmul")[1]);
    let of_launch = timeline.event(launch).unwrap();
    assert_eq!((of_launch.kind.name(), of_launch.category), ("user", Some("python")));
    assert_eq!(of_launch.step, Some(1));
    let around: Vec<_> = of_launch.ancestors.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(around, ["train"]);
    assert_eq!((of_launch.at.lane, of_launch.parent), (1, Some(of_launch.ancestors[0].event)));
    let effects: Vec<_> = of_launch.effects.iter().map(|it| (it.at.event, it.kind)).collect();
    assert_eq!(effects, [(matmul, EdgeKind::Launch)]);

    let of_matmul = timeline.event(matmul).unwrap();
    let causes: Vec<_> =
        of_matmul.causes.iter().map(|it| (it.at.event, it.name.as_str())).collect();
    assert_eq!(causes, [(launch, "launch")]);
    assert_eq!(of_matmul.self_ps, 57 * US, "without the kernel inside");
    let same = &of_matmul.same_name;
    assert_eq!((same.count, same.total_ps), (3, i128::from(150 * US)));
    assert_eq!((same.min_ps, same.median_ps, same.max_ps), (40 * US, 50 * US, 60 * US));
    let per_step: Vec<_> =
        same.per_step.iter().map(|it| (it.step, it.total_ps as i64 / US)).collect();
    assert_eq!(per_step, [(0, 40), (1, 60), (2, 50)]);
    check_histogram(&same.histogram, 3);
    assert!(!same.sampled);

    let missing = timeline.event(EventId(99)).unwrap_err();
    assert_eq!(missing, TimelineError::Event(EventId(99)));
}

fn check_histogram(histogram: &Histogram, n: u32) {
    assert_eq!(histogram.edges_ps.len(), histogram.counts.len() + 1);
    assert!(histogram.edges_ps.is_sorted());
    assert_eq!(histogram.counts.iter().sum::<u32>(), n);
}

#[test]
fn histograms_hold_all_however_far_apart() {
    for ends in [[0, 0, 0], [5, 5, 5], [1, 2, 3], [0, 1, 900_000], [7, 8, 1_000_000]] {
        let events: Vec<String> = ends
            .iter()
            .enumerate()
            .map(|(at, it)| format!("f {0}..{1}", at * 2_000_000, at * 2_000_000 + it))
            .collect();
        let (_, timeline) = timeline_of(draw(&format!("host/main: {}", events.join(", "))));
        check_histogram(&timeline.event(EventId(0)).unwrap().same_name.histogram, 3);
    }
}

#[test]
fn names_are_found_in_capitals_or_not() {
    let (_, timeline) = timeline_of(draw(RUN));
    let found = timeline.search(&Search { text: "MAT", limit: 2, range: None }).unwrap();
    assert_eq!((found.total, found.hits.len()), (3, 2));
    assert_eq!(found.names[0].name, "matmul");
    assert_eq!((found.names[0].count, found.names[0].total_ps), (3, i128::from(150 * US)));
    let starts: Vec<i64> = found.hits.iter().map(|it| it.start_ps / US).collect();
    assert_eq!(starts, [20, 120], "by start");
    let nothing = timeline.search(&Search { text: "conv", limit: 2, range: None }).unwrap();
    assert_eq!((nothing.total, nothing.names.len()), (0, 0));
    let inside = Search { text: "", limit: 9, range: Some((0, 5 * US)) };
    assert_eq!(timeline.search(&inside).unwrap().total, 1);
}

#[test]
fn a_range_counts_the_parts_inside() {
    let (_, timeline) = timeline_of(draw(RUN));
    let inside = timeline.range(15 * US, 115 * US, None).unwrap();
    let rows: Vec<_> = inside
        .rows
        .iter()
        .map(|it| (it.name.as_str(), it.count, it.total_ps as i64 / US, it.self_ps as i64 / US))
        .collect();
    assert_eq!(rows, [("train", 2, 100, 90), ("matmul", 1, 40, 40), ("launch", 2, 10, 10)]);
    assert_eq!(inside.count, 5);
    assert_eq!(timeline.range(5, 5, None).unwrap().count, 0);
    assert_eq!(timeline.range(6, 5, None), Err(TimelineError::Range { from: 6, to: 5 }));
    assert_eq!(timeline.range(0, 5, Some(&[TrackId(77)])), Err(TimelineError::Track(TrackId(77))));
}

#[test]
fn counters_keep_the_extremes_of_each_cell() {
    let mut out = TraceBuilder::new();
    let host = out.track(None, TrackKind::Host, "host");
    let track = out.track(Some(host), TrackKind::Counter, "memory");
    for at in 0..5000 {
        let value = if at == 1234 { f64::NAN } else { f64::from(at * 7919 % 1009) };
        out.counter(track, Time(i64::from(at) * 3), value);
    }
    let (tables, timeline) = timeline_of(out.finish());
    let counter = timeline.overview().tracks[track.row()].counter.unwrap();
    assert_eq!((counter.n, counter.min, counter.max), (5000, 0.0, 1008.0));
    for level in [10, 12, 14, 20, 24] {
        let mut n = 0;
        for tile in 0..=(15_000 >> level) {
            let tiles = timeline.counters(level, tile, &[track, host]).unwrap();
            assert!(tiles[1].cells.is_empty());
            for cell in &tiles[0].cells {
                let from = (tile << level) + (i64::from(cell.cell) << (level - 10));
                let to = from + (1 << (level - 10));
                let samples = tables.trace().counters.iter();
                let of_cell = samples.filter(|it| (from..to).contains(&it.time.0));
                let values: Vec<f64> = of_cell.map(|it| it.value).collect();
                n += values.len();
                let known = || values.iter().copied();
                assert_eq!(cell.min.to_bits(), known().fold(f64::NAN, f64::min).to_bits());
                assert_eq!(cell.max.to_bits(), known().fold(f64::NAN, f64::max).to_bits());
                assert_eq!(cell.last.to_bits(), values.last().unwrap().to_bits());
            }
        }
        assert_eq!(n, 5000, "every sample is in a cell");
    }
}
