use std::sync::Arc;

use trace::testing::draw;
use trace::{Frame, Place, Process, Site, SourceLine, StackSample, Stacks, StrId, Time, Trace};

use super::{DEEPEST, MOST_ROWS, PythonStack};
use crate::Tables;

/// Files and functions by number.
const FILES: [&str; 7] = [
    "/me/train.py",
    "/x/site-packages/keras/trainer.py",
    "/run/.hook/_capture/steps.py",
    "/lib/python3.12/threading.py",
    "/x/site-packages/tensorflow/python/ops/script_ops.py",
    "/me/data.py",
    "/me/other.py",
];

/// Steps of 100 µs, with these names known to the trace.
fn trace() -> Trace {
    let steps: Vec<String> =
        (0..4).map(|n| format!("train#{n} {}..{}", n * 100, n * 100 + 100)).collect();
    let names: Vec<String> =
        FILES.iter().chain(&["a line"]).map(|it| format!("{it} 0..0")).collect();
    draw(&format!("host/python: {}, {}", steps.join(", "), names.join(", ")))
}

fn text(trace: &Trace, text: &str) -> StrId {
    trace.strings.iter().find(|it| it.1 == text).unwrap().0
}

/// Each frame is of the file with its number, and called like it. A sample is a time in µs, a
/// thread and a place; thread 1 drives.
fn tables(places: Vec<Place>, samples: &[(i64, i64, u32)]) -> Tables {
    let mut trace = trace();
    let frame = |it: &&str| {
        let name = text(&trace, it);
        Frame { file: name, function: name, first_line: 1 }
    };
    let mut samples: Vec<StackSample> = samples
        .iter()
        .map(|it| StackSample { time: Time(it.0 * 1_000_000), thread: it.1, place: it.2 })
        .collect();
    samples.sort_unstable();
    let sources =
        vec![SourceLine { file: text(&trace, FILES[5]), line: 7, text: text(&trace, "a line") }];
    let stacks = Stacks { frames: FILES.iter().map(frame).collect(), places, samples, sources };
    let site = Site {
        file: FILES[0].to_owned(),
        line: 3,
        end_line: 4,
        text_line: 3,
        text: "model.fit(\n    ds)".to_owned(),
        ..Site::default()
    };
    let sites = vec![site];
    trace.processes.push(Process {
        pid: 8,
        driving_thread: Some(1),
        stacks,
        sites,
        ..Process::default()
    });
    Tables::new(Arc::new(trace))
}

const fn place(parent: Option<u32>, frame: u32, line: u32) -> Place {
    Place { parent, frame, line }
}

fn places() -> Vec<Place> {
    vec![
        place(None, 0, 4),
        place(Some(0), 1, 20),
        place(Some(1), 2, 30),
        place(Some(2), 5, 7),
        place(None, 3, 1),
        place(Some(4), 2, 2),
        place(Some(4), 4, 9),
        place(Some(6), 5, 8),
        place(None, 6, 0),
    ]
}

/// Lane, role, step; indent by depth: function:line from-to own, text.
fn shown(rows: &[PythonStack]) -> Vec<String> {
    let us = |ps: i64| ps as f64 / 1e6;
    rows.iter()
        .map(|it| {
            let step = it.step.map_or("-".to_owned(), |it| it.to_string());
            let line = it.line.map_or("?".to_owned(), |it| it.to_string());
            let indent = "  ".repeat(it.depth as usize);
            let file = it.file.rsplit('/').next().unwrap();
            let (from, to) = (us(it.start_ps), us(it.start_ps + it.dur_ps));
            let text = it.text.as_deref().map(|it| format!(" {it}")).unwrap_or_default();
            let (lane, role, own) = (it.lane, it.role, us(it.self_ps));
            format!("{lane} {role} {step} {indent}{file}:{line} {from}..{to} {own}{text}")
        })
        .collect()
}

/// Children are within their parents, own times add to the whole, all of it to the time sampled.
fn check_laws(rows: &[PythonStack]) {
    let mut inside = vec![0_i64; rows.len()];
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(row.call, at as i64);
        assert!(row.dur_ps > 0 && (0..=row.dur_ps).contains(&row.self_ps), "{row:?}");
        if let Some(parent) = row.parent {
            let around = &rows[parent as usize];
            assert!(parent < row.call && around.depth + 1 == row.depth, "{row:?}");
            assert_eq!((around.step, around.lane, around.pid), (row.step, row.lane, row.pid));
            assert!(row.start_ps >= around.start_ps, "{row:?}");
            assert!(row.start_ps + row.dur_ps <= around.start_ps + around.dur_ps, "{row:?}");
            inside[parent as usize] += row.dur_ps;
        } else {
            assert_eq!(row.depth, 0);
        }
    }
    for (row, inside) in rows.iter().zip(inside) {
        assert_eq!(row.dur_ps - inside, row.self_ps, "{row:?}");
    }
}

fn sampled_ps(rows: &[PythonStack], lane: i64) -> i64 {
    rows.iter().filter(|it| it.depth == 0 && it.lane == lane).map(|it| it.dur_ps).sum()
}

#[test]
fn samples_become_calls_and_are_cut_at_steps() {
    // The driving thread is inside a wrapper of ours at places 2 and 3; thread 5 is ours alone;
    // thread 6 makes input.
    let mut samples = Vec::new();
    for (at, place) in [1, 3, 3, 2, 0].iter().enumerate() {
        let time = 60 + 20 * at as i64;
        samples.extend([(time, 1, *place), (time, 5, 5), (time, 6, 7)]);
    }
    let tables = tables(places(), &samples);
    let rows = tables.get::<PythonStack>();
    check_laws(&rows);
    assert_eq!(
        shown(&rows),
        [
            "0 driving 0 train.py:4 60..100 0 ds)",
            "0 driving 0   trainer.py:20 60..100 20",
            "0 driving 0     data.py:7 80..100 20 a line",
            "0 driving 1 train.py:4 100..160 20 ds)",
            "0 driving 1   trainer.py:20 100..140 20",
            "0 driving 1     data.py:7 100..120 20 a line",
            "1 input 0 threading.py:1 60..100 0",
            "1 input 0   script_ops.py:9 60..100 0",
            "1 input 0     data.py:8 60..100 40",
            "1 input 1 threading.py:1 100..160 0",
            "1 input 1   script_ops.py:9 100..160 0",
            "1 input 1     data.py:8 100..160 60",
        ]
    );
    let (own, thread) = (rows[0].own, rows[0].thread);
    assert_eq!(
        (own, rows[1].own, thread, rows[0].host.as_deref()),
        (true, false, Some(1), Some("drawn"))
    );
}

#[test]
fn a_pause_is_nobodys_time() {
    // Readings 10 µs apart, and a pause of 1000.
    let samples: Vec<_> = [0, 10, 20, 1020, 1030].map(|it| (it, 1, 8)).to_vec();
    let tables = tables(places(), &samples);
    let rows = tables.get::<PythonStack>();
    check_laws(&rows);
    let expected = ["0 driving 0 other.py:? 0..30 30", "0 driving - other.py:? 1020..1040 20"];
    assert_eq!(shown(&rows), expected);
}

#[test]
fn threads_of_unknown_number_stay_apart() {
    let samples: Vec<_> = (0..4).flat_map(|it| [(it * 10, 0, 0), (it * 10, 0, 8)]).collect();
    let tables = tables(places(), &samples);
    let rows = tables.get::<PythonStack>();
    check_laws(&rows);
    assert_eq!(
        shown(&rows),
        ["0 other 0 train.py:4 0..40 40 ds)", "1 other 0 other.py:? 0..40 40"]
    );
    assert!(rows.iter().all(|it| it.thread.is_none()));
}

#[test]
fn what_a_single_reading_stands_for_is_not_known() {
    assert_eq!(tables(places(), &[(5, 1, 0)]).get::<PythonStack>().len(), 0);
    assert_eq!(tables(places(), &[]).get::<PythonStack>().len(), 0);
}

#[test]
fn whatever_the_samples_are_the_laws_hold() {
    // Numbers that a damaged log may have: places that are not there, any time, any caller.
    let mut seed = 7_u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for _ in 0..200 {
        let places: Vec<Place> = (0..next(20))
            .map(|at| {
                let parent = (next(3) > 0).then(|| next(at + 3) as u32);
                place(parent, next(9) as u32, next(4) as u32)
            })
            .collect();
        let samples: Vec<_> = (0..next(60))
            .map(|_| (next(900) as i64 - 300, next(3) as i64, next(22) as u32))
            .collect();
        let tables = tables(places, &samples);
        check_laws(&tables.get::<PythonStack>());
    }
}

#[test]
fn steps_and_lines_add_to_the_time_sampled() {
    let samples: Vec<_> = (0..60).map(|it| (it * 7, 1, (it % 4) as u32)).collect();
    let rows = tables(places(), &samples).get::<PythonStack>().to_vec();
    check_laws(&rows);
    assert_eq!(sampled_ps(&rows, 0), 60 * 7 * 1_000_000);
    let step = |step| {
        let rows = rows.iter().filter(|it| it.depth == 0 && it.step == step);
        rows.map(|it| it.dur_ps).sum::<i64>()
    };
    assert_eq!(step(Some(0)), 100_000_000);
    let all: i64 = [None, Some(0), Some(1), Some(2), Some(3)].map(step).iter().sum();
    assert_eq!(all, sampled_ps(&rows, 0));
}

#[test]
fn deep_stacks_and_many_rows_are_bounded() {
    let chain = |n: u32| (0..n).map(|at| place(at.checked_sub(1), at % 2, 1 + at)).collect();
    let deep = tables(chain(5000), &[(0, 1, 4999), (10, 1, 4999)]);
    let rows = deep.get::<PythonStack>();
    check_laws(&rows);
    assert_eq!((rows.len(), sampled_ps(&rows, 0)), (DEEPEST, 20_000_000));
    // Two stacks that take turns, and so begin anew with every sample.
    let mut places: Vec<Place> = chain(200);
    places.push(place(None, 5, 1));
    places.extend((1..200).map(|at| place(Some(200 + at - 1), 5, 1)));
    let samples: Vec<_> =
        (0..3000).map(|it| (it, 1, if it % 2 == 0 { 199 } else { 399 })).collect();
    let many = tables(places, &samples);
    let rows = many.get::<PythonStack>();
    check_laws(&rows);
    assert!(rows.len() < MOST_ROWS, "{}", rows.len());
    assert_eq!(sampled_ps(&rows, 0), 3000 * 1_000_000);
}
