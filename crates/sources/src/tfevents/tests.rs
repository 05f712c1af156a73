use std::path::{Path, PathBuf};
use std::sync::Arc;

use trace::{NoteKind, Trace, TraceBuilder};

use super::{TfEvents, masked_sum, unix_ns};
use crate::{ALL, Input, Source};

// Writing, by hand: the reader's own code must not be what the tests rest on.

fn bytes_field(number: u8, body: &[u8]) -> Vec<u8> {
    let len = body.len();
    let len = if len < 128 { vec![len as u8] } else { vec![len as u8 | 0x80, (len >> 7) as u8] };
    [&[number << 3 | 2], len.as_slice(), body].concat()
}

fn float_field(number: u8, value: f32) -> Vec<u8> {
    [&[number << 3 | 5], value.to_le_bytes().as_slice()].concat()
}

fn record(event: &[u8]) -> Vec<u8> {
    let length = (event.len() as u64).to_le_bytes();
    let sums = [masked_sum(&length).to_le_bytes(), masked_sum(event).to_le_bytes()];
    [&length, sums[0].as_slice(), event, &sums[1]].concat()
}

/// An event of one value, at second 100.
fn event(step: u8, value: &[u8]) -> Vec<u8> {
    let summary = bytes_field(5, &bytes_field(1, value));
    [&[0x09], 100_f64.to_le_bytes().as_slice(), &[0x10, step], &summary].concat()
}

fn simple(tag: &[u8], value: f32) -> Vec<u8> {
    [bytes_field(1, tag), float_field(2, value)].concat()
}

fn plugin(name: &[u8]) -> Vec<u8> {
    bytes_field(9, &bytes_field(1, &bytes_field(1, name)))
}

/// A tensor of one float, written without packing, as old protobufs do.
fn tensor(tag: &[u8], value: f32, metadata: &[u8]) -> Vec<u8> {
    let tensor = [vec![0x08, 1], float_field(5, value)].concat();
    [bytes_field(1, tag), bytes_field(8, &tensor), metadata.to_vec()].concat()
}

fn read_into(out: &mut TraceBuilder, name: &str, file: &[u8]) {
    let input = Input { bytes: Arc::new(file.to_vec()), path: Path::new(name) };
    TfEvents.read(&input, out).unwrap();
}

fn read(file: &[u8]) -> Trace {
    let mut out = TraceBuilder::new();
    read_into(&mut out, "logs/train/events.out.tfevents.1", file);
    out.finish()
}

fn points(trace: &Trace) -> Vec<(&str, i64, f64)> {
    let tag = |it: &trace::Scalar| &*trace.series[it.series.row()].tag;
    trace.scalars.iter().map(|it| (tag(it), it.step, it.value)).collect()
}

fn notes(trace: &Trace) -> Vec<(NoteKind, u64)> {
    trace.notes.iter().map(|it| (it.kind, it.count)).collect()
}

#[test]
fn a_plugin_named_once_holds_for_its_tag() {
    let scalars = plugin(b"scalars");
    let file = [
        tensor(b"before", 1.0, b""),
        tensor(b"a", 1.0, &scalars),
        tensor(b"a", 2.0, b""),
        tensor(b"picture", 3.0, &plugin(b"images")),
        tensor(b"picture", 4.0, &scalars),
        simple(b"plain", 5.0),
    ];
    let trace = read(&file.map(|it| record(&event(7, &it))).concat());
    assert_eq!(points(&trace), [("a", 7, 1.0), ("a", 7, 2.0), ("plain", 7, 5.0)]);
    assert_eq!(&*trace.series[0].run, "logs/train");
    assert_eq!(trace.scalars[0].unix_ns, Some(100_000_000_000));
    let left: Vec<_> = trace.left_out.iter().map(|it| (it.kind.as_str(), it.count)).collect();
    assert_eq!(left, [("tensors", 1), ("images", 2)]);
    assert_eq!(notes(&trace), []);
}

#[test]
fn a_second_file_of_a_run_may_name_no_plugin() {
    let first = record(&event(1, &tensor(b"a", 1.0, &plugin(b"scalars"))));
    let second = record(&event(2, &tensor(b"a", 2.0, b"")));
    let mut out = TraceBuilder::new();
    read_into(&mut out, "train/events.out.tfevents.1", &first);
    read_into(&mut out, "train/events.out.tfevents.2", &second);
    read_into(&mut out, "other/events.out.tfevents.2", &second);
    let trace = out.finish();
    assert_eq!(points(&trace), [("a", 1, 1.0), ("a", 2, 2.0)]);
    assert_eq!(trace.left_out.len(), 1, "in another run that says nothing");
}

#[test]
fn fields_in_any_order() {
    let summary = bytes_field(5, &bytes_field(1, &simple(b"x", 1.5)));
    let late = [summary.as_slice(), &[0x10, 3, 0x09], &0.25_f64.to_le_bytes()].concat();
    let trace = read(&record(&late));
    assert_eq!(points(&trace), [("x", 3, 1.5)]);
    assert_eq!(trace.scalars[0].unix_ns, Some(250_000_000));
}

#[test]
fn a_damaged_record_is_left_out_and_a_damaged_length_ends_the_file() {
    let parts = [1.0, 2.0, 3.0].map(|it| record(&event(1, &simple(b"x", it))));
    let at = parts[0].len();
    let whole = parts.concat();
    let damaged = |byte: usize| {
        let mut file = whole.clone();
        file[byte] ^= 0x40;
        let trace = read(&file);
        (points(&trace).iter().map(|it| it.2).collect::<Vec<_>>(), notes(&trace))
    };
    assert_eq!(damaged(at + 20), (vec![1.0, 3.0], vec![(NoteKind::Malformed, 1)]));
    assert_eq!(damaged(at + 2), (vec![1.0], vec![(NoteKind::Malformed, 1)]));
    assert_eq!(damaged(at + 9), (vec![1.0], vec![(NoteKind::Malformed, 1)]));
    // What a crash of the machine may leave at the end.
    let trace = read(&[whole, vec![0; 4096]].concat());
    assert_eq!((trace.scalars.len(), notes(&trace)), (3, vec![(NoteKind::Malformed, 1)]));
}

#[test]
fn lengths_that_lie_are_not_believed() {
    for length in [1_u64 << 20, u64::from(u32::MAX), i64::MAX as u64, u64::MAX, u64::MAX - 15] {
        let length = length.to_le_bytes();
        let header = [length.to_vec(), masked_sum(&length).to_le_bytes().to_vec()];
        let file = [record(&event(1, &simple(b"x", 1.0))), header.concat(), vec![9; 100]].concat();
        let trace = read(&file);
        assert_eq!((trace.scalars.len(), notes(&trace)), (1, vec![(NoteKind::Truncated, 1)]));
    }
}

#[test]
fn what_is_no_single_number_is_said() {
    let scalars = plugin(b"scalars");
    // A string; two dimensions of 1 × 2; content of the wrong length.
    let tensors: [&[u8]; 3] = [
        &[0x08, 7, 0x42, 1, b'x'],
        &[0x08, 1, 0x12, 8, 0x12, 2, 0x08, 1, 0x12, 2, 0x08, 2, 0x2A, 4, 0, 0, 0, 0],
        &[0x08, 1, 0x22, 3, 0, 0, 0],
    ];
    for tensor in tensors {
        let value = [bytes_field(1, b"x"), bytes_field(8, tensor), scalars.clone()].concat();
        let trace = read(&record(&event(1, &value)));
        assert_eq!((points(&trace), notes(&trace)), (vec![], vec![(NoteKind::Malformed, 1)]));
    }
    // One of 1 × 1, packed; and one whose zero was left out.
    let fine: [(&[u8], f64); 2] = [
        (&[0x08, 1, 0x12, 8, 0x12, 2, 0x08, 1, 0x12, 2, 0x08, 1, 0x2A, 4, 0, 0, 0x80, 0x3F], 1.0),
        (&[0x08, 9, 0x12, 0], 0.0),
    ];
    for (tensor, expected) in fine {
        let value = [bytes_field(1, b"x"), bytes_field(8, tensor), scalars.clone()].concat();
        assert_eq!(points(&read(&record(&event(1, &value)))), [("x", 1, expected)]);
    }
}

#[test]
fn times_are_exact_or_not_known() {
    assert_eq!(unix_ns(1_500_000_000.25), Some(1_500_000_000_250_000_000));
    assert_eq!(unix_ns(-0.75), Some(-750_000_000));
    // The double next to it is 1794806400.1234569549560546875.
    assert_eq!(unix_ns(1_794_806_400.123_457), Some(1_794_806_400_123_456_955));
    for it in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e300, 9.3e9] {
        assert_eq!(unix_ns(it), None, "{it}");
    }
    let mut late = event(1, &simple(b"x", 1.0));
    late[1..9].copy_from_slice(&f64::NAN.to_le_bytes());
    let trace = read(&record(&late));
    assert_eq!(trace.scalars[0].unix_ns, None);
    assert_eq!(notes(&trace), [(NoteKind::BadTimestamp, 1)]);
}

#[test]
fn tags_that_are_no_text_are_shown_and_counted_once() {
    let file = record(&event(1, &simple(b"a\xFF", 1.0))).repeat(3);
    let trace = read(&file);
    assert_eq!(points(&trace)[0].0, "a\u{FFFD}");
    assert_eq!(notes(&trace), [(NoteKind::BadText, 1)]);
}

/// An image in a record larger than is read at once: the scalars around it are read all the same.
#[test]
fn large_records_are_passed_over() {
    let mut picture = vec![0x0A, 0x01, b'p', 0x22];
    let len = 2_u32 << 20;
    let groups = [len & 0x7F | 0x80, len >> 7 & 0x7F | 0x80, len >> 14 & 0x7F | 0x80, len >> 21];
    picture.extend(groups.map(|it| it as u8));
    picture.resize(picture.len() + len as usize, 0xAB);
    let nest = |number: u8, body: &[u8]| {
        let len = body.len() as u32;
        let groups =
            [len & 0x7F | 0x80, len >> 7 & 0x7F | 0x80, len >> 14 & 0x7F | 0x80, len >> 21];
        [&[number << 3 | 2], groups.map(|it| it as u8).as_slice(), body].concat()
    };
    let event_of = [[0x09; 9].as_slice(), &nest(5, &nest(1, &picture))].concat();
    let scalar = record(&event(1, &simple(b"x", 1.0)));
    let trace = read(&[scalar.clone(), record(&event_of), scalar].concat());
    assert_eq!(trace.scalars.len(), 2);
    assert_eq!(trace.left_out[0].kind, "images");
    assert_eq!(notes(&trace), []);
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, files);
        } else if ["xplane.pb", "tfevents"].iter().any(|it| path.to_string_lossy().contains(it)) {
            files.push(path);
        }
    }
}

#[test]
fn every_file_of_testdata_is_known_to_exactly_one_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let mut files = Vec::new();
    files_below(&folder, &mut files);
    assert!(files.iter().any(|it| it.to_string_lossy().contains("tfevents")));
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let head = &bytes[..bytes.len().min(4096)];
        let names: Vec<&str> = ALL.iter().filter(|it| it.sniff(head)).map(|it| it.name()).collect();
        let is_log = file.to_string_lossy().contains("tfevents");
        assert_eq!(names, [if is_log { "tfevents" } else { "xplane" }], "{}", file.display());
    }
}

/// Lengths that look like an empty field of another format, and records of examples.
#[test]
fn no_other_source_takes_an_event_file() {
    for len in [10, 18, 26, 34] {
        let mut event = vec![0x09; 9];
        event.resize(len, 0);
        let file = record(&event);
        let names: Vec<&str> =
            ALL.iter().filter(|it| it.sniff(&file)).map(|it| it.name()).collect();
        assert_eq!(names, ["tfevents"], "{len} bytes");
    }
    let example = record(&bytes_field(1, b"features"));
    assert!(!ALL.iter().any(|it| it.sniff(&example)), "a record of examples");
}
