//! Shapes that no profiler writes.

use super::*;

#[test]
fn lengths_past_the_end_at_every_depth() {
    let _turn = alone();
    for len in [5, 1_000_000_000, u64::from(u32::MAX), u64::MAX / 2, u64::MAX] {
        let stat = claiming(4, len, &int(1, 0));
        let depths = [
            (
                "stat",
                plane("/host:CPU", &[names(), line(1, "python", 0, &[event(0, 0, 9, &[stat])])]),
            ),
            (
                "event",
                plane(
                    "/host:CPU",
                    &[names(), line(1, "python", 0, &[claiming(4, len, &int(1, 0))])],
                ),
            ),
            ("line", plane("/host:CPU", &[names(), claiming(3, len, &event(0, 0, 9, &[]))])),
            ("line's name", plane("/host:CPU", &[field(3, claiming(2, len, b"py"))])),
            ("metadata", plane("/host:CPU", &[claiming(4, len, &int(1, 0))])),
            ("metadata's value", plane("/host:CPU", &[field(4, claiming(2, len, &int(1, 0)))])),
            ("plane", claiming(1, len, &field(2, "/host:CPU"))),
            ("plane's name", field(1, claiming(2, len, b"/host:CPU"))),
        ];
        for (name, bytes) in depths {
            let session = readable(name, &bytes);
            let (kinds, metadata) = (notes(session.trace()), name.starts_with("metadata's"));
            assert!(metadata || !kinds.is_empty(), "{name}, {len}: damage is counted");
        }
    }
}

#[test]
fn a_million_empty_events_are_a_million_events() {
    let _turn = alone();
    let bytes = plane("/host:CPU", &[field(3, field(4, b"").repeat(1_000_000))]);
    let session = readable("empty events", &bytes);
    assert_eq!(session.trace().events.len(), 1_000_000);
    assert_eq!(notes(session.trace()), [("unknown-name", 1_000_000)]);
}

/// Lines are read a few megabytes at a time: an event may lie across a border, or be longer than
/// what is read at once.
#[test]
fn events_across_the_borders_of_pieces_are_whole() {
    let _turn = alone();
    let (mut random, long) = (Random(5), 20_000);
    let lengths: Vec<usize> =
        (0..60_000).map(|nth| if nth == long { 9 << 20 } else { random.below(400) }).collect();
    let event = |(nth, len): (usize, &usize)| {
        let text = stat(4, 1, field(5, "x".repeat(*len)));
        event(0, nth as i64 * 1000, 1000, &[text])
    };
    let events: Vec<Vec<u8>> = lengths.iter().enumerate().map(event).collect();
    // What the line is called may come last as well.
    let line = field(3, [events.concat(), int(1, 7), int(3, 5), field(2, "late")].concat());
    let bytes = plane("/host:CPU", &[stat_name(1, "note"), event_name(0, "train"), line]);
    let session = open("host.xplane.pb", &bytes).unwrap();
    let trace = session.trace();
    assert_eq!((trace.events.len(), notes(trace)), (lengths.len(), vec![]));
    assert!(trace.events.start.windows(2).all(|it| it[1].0 - it[0].0 == 1000));
    assert!(
        trace.tracks.iter().any(|it| trace.text(it.name).contains("late")),
        "{:?}",
        trace.tracks
    );
    for nth in (0..lengths.len()).step_by(997).chain([long - 1, long, long + 1]) {
        let args = trace.args.of(EventId(nth as u32));
        let [(_, FactValue::Text(text))] = args.as_slice() else { panic!("{nth}: {args:?}") };
        assert_eq!(text.len(), lengths[nth], "{nth}");
    }
}

#[test]
fn a_million_empty_parts_of_each_kind() {
    let _turn = alone();
    for number in 1..=7 {
        let many = field(number, b"").repeat(1_000_000);
        readable("parts of a file", &[plane("/host:CPU", &[]), many.clone()].concat());
        readable("parts of a plane", &field(1, [many.clone(), field(2, "/host:CPU")].concat()));
        readable("parts of a line", &plane("/host:CPU", &[field(3, &many)]));
        readable("parts of an event", &plane("/host:CPU", &[field(3, field(4, &many))]));
        readable("parts of metadata", &plane("/host:CPU", &[field(4, field(2, &many))]));
    }
}

#[test]
fn many_small_planes_lines_and_devices() {
    let _turn = alone();
    let planes = plane("/device:GPU", &[line(1, "Stream #1", 0, &[event(0, 0, 9, &[])])]);
    let session = readable("planes", &planes.repeat(50_000));
    assert_eq!(notes(session.trace()), [("malformed", 40_000), ("unknown-name", 10_000)]);

    let lines: Vec<u8> = (0..200_000).flat_map(|id| field(3, int(1, id))).collect();
    readable("lines", &plane("/host:CPU", &[lines]));

    // Each plane with an id that asks for a table of its own.
    let wide = plane("p", &[event_name(1000, ""), stat_name(1000, "")]);
    readable("wide ids", &wide.repeat(50_000));

    let devices: Vec<u8> = (0..9_000)
        .flat_map(|it| {
            plane(&format!("/device:GPU:{it}"), &[line(1, "Stream #1", 0, &[event(0, 0, 9, &[])])])
        })
        .collect();
    let steps: Vec<Vec<u8>> =
        (0..3_000).map(|it| event(0, it * 10, 9, &[stat(4, 15, int(4, it))])).collect();
    let host = plane("/host:CPU", &[names(), line(1, "python", 0, &steps)]);
    let session = readable("devices", &[devices, host].concat());
    assert_eq!(session.tables().get::<Step>().len(), 3_000);
}

/// The start and length of each of many events.
type Shape<'a> = &'a dyn Fn(i64) -> (i64, i64);

/// Events on one line with these starts and lengths, all of one name.
pub(crate) fn one_line(
    spans: impl Iterator<Item = (i64, i64)>,
    name: i64,
    stats: &[Vec<u8>],
) -> Vec<u8> {
    let events: Vec<Vec<u8>> = spans.map(|(from, dur)| event(name, from, dur, stats)).collect();
    plane("/host:CPU", &[names(), line(1, "python", 0, &events)])
}

#[test]
fn nesting_takes_no_longer_however_events_lie() {
    let _turn = alone();
    const N: i64 = 200_000;
    let inside = |it: i64| (it, 2 * (N - it));
    let staircase = |it: i64| (it, N);
    let apart = |it: i64| (it * 3, 2);
    let same_start = |it: i64| (0, it);
    let same = |_| (5, 5);
    let points = |it: i64| (it / 2, if it < 2 { N } else { 0 });
    let shapes: [(&str, Shape<'_>); 6] = [
        ("inside one another", &inside),
        ("overlapping the next", &staircase),
        ("apart", &apart),
        ("from the same start", &same_start),
        ("all the same", &same),
        ("points", &points),
    ];
    for (name, shape) in shapes {
        // Names that analyses climb from: a compilation, a call of a function, a step.
        for (id, stats) in [
            (0, vec![]),
            (2, vec![]),
            (5, vec![stat(4, 17, int(4, 3))]),
            (0, vec![stat(4, 15, int(4, 3))]),
        ] {
            let session = readable(name, &one_line((0..N).map(shape), id, &stats));
            assert_eq!(session.trace().events.len(), N as usize, "{name}");
        }
    }
    let depth = |shape: Shape<'_>| {
        let session = readable("depth", &one_line((0..1000).map(shape), 0, &[]));
        let events = &session.trace().events;
        events.ancestors(EventId(events.len() as u32 - 1)).count()
    };
    assert_eq!(depth(&inside), 999);
    assert_eq!(depth(&staircase), 0);
    assert_eq!(depth(&same), 999);
}

/// Functions called and compiled deep inside one another: from each, analyses look upwards.
#[test]
fn climbing_out_of_deep_nesting_is_linear() {
    let _turn = alone();
    const N: i64 = 200_000;
    let key = |it: i64| [stat(4, 17, int(4, it))];
    // Without steps nobody looks.
    let mut deep: Vec<Vec<u8>> =
        (-3..=0).map(|it| event(0, it * 2 * N, 2 * N, &[stat(4, 15, int(4, it))])).collect();
    deep.extend((0..N).map(|it| event([1, 2, 5][it as usize % 3], it, 2 * (N - it), &key(it))));
    let runs: Vec<Vec<u8>> = (0..N).map(|it| event(4, it, 1, &key(it))).collect();
    let bytes =
        plane("/host:CPU", &[names(), line(1, "python", 0, &deep), line(2, "pool", 0, &runs)]);
    let session = readable("deep calls", &bytes);
    assert_eq!(session.tables().get::<Step>().len(), 4);
    assert!(session.trace().edges.len() >= N as usize / 3);
}

#[test]
fn a_few_bytes_that_refer_to_a_long_text_do_not_multiply_it() {
    let _turn = alone();
    let long = "x".repeat(300_000);
    let long_stats = [names(), stat_name(90, &long)].concat();
    let ref_to_long = || int(7, 90);
    let facts: Vec<u8> = (0..30_000).flat_map(|it| stat(6, it, ref_to_long())).collect();
    let keys: Vec<u8> = (0..30_000).flat_map(|it| stat(6, 90, int(4, it))).collect();
    let steps = |n: i64| {
        (0..n).map(|it| event(0, it * 10, 9, &[stat(4, 15, int(4, it))])).collect::<Vec<_>>()
    };
    let details: Vec<Vec<u8>> = (0..30_000)
        .map(|it| event(0, it, 1, &[stat(4, 7, int(4, it)), stat(4, 0, ref_to_long())]))
        .collect();
    let allocations: Vec<Vec<u8>> = (0..30_000)
        .map(|it| event(3, it, 0, &[stat(4, 22, ref_to_long()), stat(4, 23, int(4, it))]))
        .collect();
    let protos =
        [field(2, &long), field(5, [int(1, 91), field(6, "")].concat()).repeat(30_000)].concat();
    let programs = [stat_name(91, "hlo proto"), field(4, [int(1, 1), field(2, protos)].concat())];
    // Stats of a name, which every one of its events has.
    let said =
        [field(2, "op"), field(5, [int(1, 0), field(5, "op")].concat()).repeat(30_000)].concat();
    let named = field(4, [int(1, 50), field(2, said)].concat());
    let of_name: Vec<Vec<u8>> =
        (0..30_000).map(|it| event(50, it, 1, &[stat(4, 7, int(4, it))])).collect();

    // Rows of a table of their own, each with the kernel's name.
    let launch = |it: i64| field(5, format!("regs:{it} grid:1,1,1 block:32,1,1"));
    let kernels: Vec<Vec<u8>> = (0..3000)
        .map(|it| {
            event(
                0,
                it,
                1,
                &[stat(4, 8, [int(1, 8), launch(it % 255)].concat()), stat(4, 7, int(4, it))],
            )
        })
        .collect();
    let kernel_name =
        [event_name(0, &long), stat_name(7, "program_id"), stat_name(8, "kernel_details")];
    let scopes = [
        event_name(0, "a/".repeat(20_000) + "b:Add"),
        line(1, "python", 0, &[event(0, 0, 5, &[])]),
    ];

    let shapes = [
        (
            "kernel names",
            plane("/device:GPU:0", &[kernel_name.concat(), line(1, "Stream #1", 0, &kernels)]),
        ),
        ("scopes", plane("/host:CPU", &scopes)),
        ("facts", plane("/device:GPU:0", &[long_stats.clone(), facts])),
        ("keys of facts", plane("/device:GPU:0", &[long_stats.clone(), keys])),
        ("details", plane("/host:CPU", &[long_stats.clone(), line(1, "python", 0, &details)])),
        ("allocators", plane("/host:CPU", &[long_stats, line(1, "python", 0, &allocations)])),
        ("programs", plane("/host:metadata", &programs)),
        ("stats of a name", plane("/host:CPU", &[names(), named, line(1, "python", 0, &of_name)])),
        (
            "plane",
            plane(&(long.clone() + "/host:"), &[names(), line(1, "python", 0, &steps(9000))]),
        ),
        (
            "host",
            [field(4, &long), plane("/host:CPU", &[names(), line(1, "python", 0, &steps(9000))])]
                .concat(),
        ),
        (
            "marker",
            plane(
                "/host:CPU",
                &[
                    event_name(0, &long),
                    stat_name(15, "step_num"),
                    line(1, "python", 0, &steps(9000)),
                ],
            ),
        ),
    ];
    for (name, bytes) in shapes {
        readable(name, &bytes);
    }
}
