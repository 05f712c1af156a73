//! Times, ids and texts at the edges of what their types hold.

use super::shapes::one_line;
use super::*;

#[test]
fn times_at_the_edges_of_their_type() {
    let _turn = alone();
    let edges = [
        0,
        1,
        -1,
        i64::MAX,
        i64::MIN,
        i64::MAX / 1000,
        i64::MIN / 1000,
        (1 << 60) - 1,
        -(1 << 60) + 1,
        1 << 60,
        (1 << 60) / 1000,
        -(1 << 60) / 1000,
        1 << 50,
        1_700_000_000_000_000_000,
    ];
    // Every kind of step: markers, calls, a period; and a window that says any time.
    for (name, stats) in [(0, vec![stat(4, 15, int(4, i64::MIN))]), (1, vec![]), (8, vec![])] {
        for timestamp in edges {
            for window in edges {
                let events: Vec<Vec<u8>> = edges
                    .iter()
                    .flat_map(|&from| {
                        [0, 9, (1 << 60) - 1, -5, i64::MIN]
                            .map(|dur| event(name, from, dur, &stats))
                    })
                    .collect();
                let host = plane("/host:CPU", &[names(), line(1, "python", timestamp, &events)]);
                let device =
                    plane("/device:GPU:0", &[names(), line(1, "Stream #1", timestamp, &events)]);
                let says = [stat(6, 24, int(3, timestamp)), stat(6, 25, int(3, window))].concat();
                let environment = plane("Task Environment", &[names(), says]);
                let bytes = [host, device, environment].concat();
                case(
                    || format!("event {name}, timestamp {timestamp}, window {window}"),
                    || {
                        let session = readable("times", &bytes);
                        assert!(
                            session
                                .trace()
                                .notes
                                .iter()
                                .any(|it| it.kind == NoteKind::BadTimestamp)
                        );
                    },
                );
            }
        }
    }
}

#[test]
fn steps_far_apart_in_time() {
    let _turn = alone();
    let far = (1_i64 << 60) - 1;
    let times: Vec<i64> = (-8..=8).map(|it| far / 8 * it).collect();
    for (name, stats) in [(0, vec![stat(4, 15, int(4, 1))]), (1, vec![]), (8, vec![])] {
        for dur in [0, 1, far / 16, far] {
            let session =
                readable("far apart", &one_line(times.iter().map(|&it| (it, dur)), name, &stats));
            assert_eq!(session.trace().events.len(), times.len());
        }
    }
}

#[test]
fn ids_of_any_size_and_twice_the_same() {
    let _turn = alone();
    let ids = [0, 1, -1, i64::MIN, i64::MAX, 1 << 32, 1023, 5, 5];
    let named: Vec<Vec<u8>> = ids.iter().map(|&it| event_name(it, format!("name {it}"))).collect();
    let stats: Vec<Vec<u8>> = ids.iter().map(|&it| stat_name(it, "correlation_id")).collect();
    let carries = |it: i64| ids.map(|key| stat(4, key, int(4, it)));
    let events: Vec<Vec<u8>> =
        ids.iter().map(|&it| event(it, it.saturating_abs() % 1000, 5, &carries(it))).collect();
    let part = |name: &str| {
        plane(name, &[named.concat(), stats.concat(), line(i64::MIN, "python", 0, &events)])
    };
    let session = readable("ids", &[part("/host:CPU"), part("/device:GPU:0")].concat());
    assert_eq!(notes(session.trace()), []);
    assert_eq!(session.trace().events.len(), 2 * ids.len());
    assert!(session.trace().strings.iter().any(|it| it.1 == format!("name {}", i64::MIN)));
    assert_eq!(session.trace().edges.len(), ids.len(), "each key meets its own");

    // Of a name given twice the last counts, as in protobuf.
    let twice = [event_name(7, "first"), event_name(7, "last")].concat();
    let session = readable(
        "twice",
        &plane("/host:CPU", &[twice, line(1, "python", 0, &[event(7, 0, 1, &[])])]),
    );
    assert_eq!(session.trace().name(EventId(0)), "last");
}

/// Keys near the end of the number range, then at its start: their distance wraps around.
#[test]
fn correlation_keys_that_wrap_around_still_meet() {
    let _turn = alone();
    let keys = [-1_i64, 1, 0, -2, i64::MAX, i64::MIN];
    let calls: Vec<Vec<u8>> = (0..)
        .zip(keys)
        .map(|(at, key)| event(0, at * 10, 5, &[stat(4, 14, int(4, key))]))
        .collect();
    let host = plane("/host:CPU", &[names(), line(1, "python", 0, &calls)]);
    let device = plane("/device:GPU:0", &[names(), line(1, "Stream #1", 0, &calls)]);
    let session = readable("keys", &[host, device].concat());
    let edges = &session.trace().edges;
    assert_eq!(edges.len(), keys.len());
    for (from, to) in edges.from.iter().zip(&edges.to) {
        assert_eq!(
            session.trace().events.start[from.row()],
            session.trace().events.start[to.row()]
        );
    }
}

/// Every plane that means something, with every stat of every type, in random nonsense.
#[test]
fn special_planes_with_nonsense_in_them() {
    let _turn = alone();
    let mut random = Random(99);
    let numbers = [0, 1, -1, 15, i64::MAX, i64::MIN, 1 << 58, 4096];
    let texts: [&[u8]; 8] = [
        b"",
        b"\xFF\xFE",
        b"grid:1,2,3,4 block:,, regs:-1 occ_pct:NaN size:99999999999999999999",
        b"occ_pct:1e300 size:5 grid:18446744073709551615,1,1",
        b"::##",
        b"traced-18446744073709551616",
        "é".as_bytes(),
        b"all-reduce",
    ];
    let value = |random: &mut Random| match random.below(6) {
        0 => {
            let double = random.pick(&[f64::NAN, f64::INFINITY, -0.0, f64::MIN_POSITIVE, 1e308]);
            [varint(2 << 3 | 1), double.to_le_bytes().to_vec()].concat()
        }
        1 => int(3, random.pick(&numbers)),
        2 => int(4, random.pick(&numbers)),
        3 => field(5, random.pick(&texts)),
        4 => field(6, random.pick(&texts)),
        _ => int(7, random.pick(&[0, 3, 25, -1, 90])),
    };
    for round in 0..1500 {
        let mut bytes = Vec::new();
        for name in PLANES {
            let mut lines = Vec::new();
            for id in 0..3 {
                let mut events = Vec::new();
                for _ in 0..random.below(12) {
                    let stats: Vec<Vec<u8>> = (0..random.below(6))
                        .map(|_| stat(4, random.below(STATS.len() + 1) as i64, value(&mut random)))
                        .collect();
                    let times = (random.below(100) as i64, random.below(60) as i64);
                    events.push(event(
                        random.below(EVENTS.len() + 1) as i64,
                        times.0,
                        times.1,
                        &stats,
                    ));
                }
                let name =
                    random.pick(&["python", "Steps", "XLA Ops", "Stream #1", "tf_data_x", ""]);
                lines.push(line(id, name, 0, &events));
            }
            let facts: Vec<Vec<u8>> = (0..4)
                .map(|_| stat(6, random.below(STATS.len() + 1) as i64, value(&mut random)))
                .collect();
            bytes.extend(plane(name, &[names(), lines.concat(), facts.concat()]));
        }
        case(|| format!("round {round}"), || readable("special planes", &bytes));
    }
}

#[test]
fn text_that_is_no_text_is_shown_and_counted() {
    let _turn = alone();
    let bad = b"train\xFF\xC3".as_slice();
    let parts = [event_name(0, bad), stat_name(0, bad), stat(6, 0, field(5, bad))].concat();
    let line = field(3, [field(2, bad), field(11, bad), event(0, 0, 5, &[])].concat());
    let bytes = [
        field(1, [field(2, b"/host:\xFF".as_slice()), parts, line].concat()),
        field(4, bad),
        field(2, bad),
    ]
    .concat();
    let session = readable("bad text", &bytes);
    assert_eq!(session.trace().name(EventId(0)), "train\u{FFFD}\u{FFFD}");
    assert!(session.trace().notes.iter().any(|it| it.kind == NoteKind::BadText));
}

/// An event whose tag takes two bytes where one would do is legal, and an event.
#[test]
fn long_winded_tags_are_read() {
    let _turn = alone();
    let body = [int(1, 0), int(2, 5), int(3, 9)].concat();
    let long_winded = [vec![0xA2, 0x00], varint(body.len() as u64), body].concat();
    let bytes =
        plane("/host:CPU", &[names(), line(1, "python", 0, &[long_winded, event(0, 20, 1, &[])])]);
    let session = readable("long tags", &bytes);
    assert_eq!(session.trace().events.len(), 2);
    assert_eq!(session.trace().name(EventId(0)), "train");
    assert_eq!(notes(session.trace()), []);
}
