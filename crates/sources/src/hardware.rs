//! Reads the samples of the machine that are taken beside a run (`hardware.jsonl`).
//!
//! | theirs                     | ours                                    |
//! |----------------------------|-----------------------------------------|
//! | a column                   | counter track below its host            |
//! | a value                    | counter                                 |
//! | `cores`, `memory_bytes`, … | facts of the host                       |
//! | `gpus`                     | facts of the host, as `gpu 0/name`      |
//! | `missing`                  | facts of the host, as `missing cpu/clock` |
//! | `files`, between rows      | facts of the host, as `files on /data`  |
//!
//! The file is described in `docs/run-folder.md`. Samples say nothing about when the profiler was
//! on: they go on for as long as the run does, and leave the trace's window alone.

use serde_json::{Map, Value};
use trace::{FactValue, NoteKind, Time, TraceBuilder, TrackId, TrackKind};

use crate::file::Line;
use crate::{Change, Claim, Input, Listed, Pieces, Source, SourceError};

#[derive(Debug)]
pub struct Hardware;

const READER: &str = "hardware";

/// Names stand in every row of a table.
const LONGEST_NAME: usize = 256;
/// A machine has some columns for each core and GPU; a damaged file could name any number.
const MOST_COLUMNS: usize = 20_000;
/// Longer than a row of so many columns; a line is in memory as a whole.
const LONGEST_LINE: usize = 4 << 20;
/// A program reads from some; a damaged file could name any number.
const MOST_MOUNTS: usize = 100;

impl Source for Hardware {
    fn name(&self) -> &'static str {
        READER
    }

    /// A line of JSON that says so itself.
    fn claim(&self, file: Listed<'_>) -> Claim {
        if file.in_capture && file.name == "hardware.jsonl" { Claim::Beside } else { Claim::No }
    }

    fn sniff(&self, head: &[u8]) -> bool {
        says(head, "hardware")
    }

    fn read(&self, input: &Input<'_>, out: &mut TraceBuilder) -> Result<(), SourceError> {
        let pieces = Pieces::new(&*input.bytes);
        let mut reader: Option<Result<Reader, SourceError>> = None;
        pieces.each_line(LONGEST_LINE, |line| match &mut reader {
            None => reader = Some(Reader::new(&line.bytes, out)),
            Some(Ok(reader)) => reader.line(line, out),
            Some(Err(_)) => (),
        });
        let reader = reader.unwrap_or_else(|| Reader::new(b"", out));
        if reader.is_err() {
            pieces.refuse_fault()?;
        }
        let reader = reader?;
        pieces.note(input.path.display(), Change::Grown, out);
        // What was said last is of all that was read.
        for (at, file_system) in reader.read_from.into_iter().flatten() {
            out.fact(reader.host, &format!("files on {at}"), FactValue::Text(file_system));
        }
        Ok(())
    }
}

/// The file while it is read.
struct Reader {
    host: TrackId,
    columns: Vec<TrackId>,
    row: Vec<Option<f64>>,
    read_from: Option<Vec<(String, String)>>,
}

impl Reader {
    fn new(header: &[u8], out: &mut TraceBuilder) -> Result<Reader, SourceError> {
        let header = Header::parse(header)?;
        let host = host_track(&header.host, out);
        header.tell(host, out);
        let columns: Vec<TrackId> =
            header.columns.iter().map(|it| out.track(Some(host), TrackKind::Counter, it)).collect();
        let row = Vec::with_capacity(columns.len());
        Ok(Reader { host, columns, row, read_from: None })
    }

    fn line(&mut self, line: &Line, out: &mut TraceBuilder) {
        if line.bytes.trim_ascii().is_empty() {
            return;
        }
        if let Some(files) = files(&line.bytes) {
            self.read_from = Some(files);
            return;
        }
        let Some(unix_ns) = parse(&line.bytes, self.columns.len(), &mut self.row) else {
            // Behind the last line's end is nothing; anything else there was cut off.
            let kind = if line.is_whole { NoteKind::Malformed } else { NoteKind::Truncated };
            out.note(kind, || format!("a row of samples: {:?}", short(&line.bytes)));
            return;
        };
        let Some(time) = time(unix_ns, out) else { return };
        for (&track, value) in self.columns.iter().zip(&self.row) {
            if let Some(value) = value {
                out.counter(track, time, *value);
            }
        }
    }
}

/// Where files were read from, and what file system that is: most files first.
fn files(line: &[u8]) -> Option<Vec<(String, String)>> {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let said: Value = serde_json::from_slice(line).ok()?;
    let short = |it: &Value| Some(it.as_str()?.chars().take(LONGEST_NAME).collect());
    let one = |it: &Value| Some((short(&it["at"])?, short(&it["file_system"])?));
    Some(said["files"].as_array()?.iter().take(MOST_MOUNTS).filter_map(one).collect())
}

/// Whether a file begins with an object that says it is `what` of ours.
fn says(head: &[u8], what: &str) -> bool {
    let Some(rest) = head.trim_ascii_start().strip_prefix(b"{") else { return false };
    let Some(rest) = rest.trim_ascii_start().strip_prefix(b"\"strobe\"") else { return false };
    let Some(rest) = rest.trim_ascii_start().strip_prefix(b":") else { return false };
    rest.trim_ascii_start().starts_with(format!("\"{what}\"").as_bytes())
}

fn short(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned()
}

/// The first line.
struct Header {
    host: String,
    columns: Vec<String>,
    all: Map<String, Value>,
}

impl Header {
    fn parse(line: &[u8]) -> Result<Header, SourceError> {
        let broken = |what: String| SourceError::Broken { reader: READER, what };
        let all = match serde_json::from_slice(line) {
            Ok(Value::Object(it)) => it,
            Ok(_) => return Err(broken("the first line of the samples is no object".to_owned())),
            Err(error) => {
                return Err(broken(format!(
                    "the first line of the samples cannot be read: {error}\n  hint: was the run \
                     killed as it began?"
                )));
            }
        };
        if all.get("version").and_then(Value::as_i64) != Some(1) {
            let hint = "the samples are of a version that is not known\n  hint: is there a newer \
                        strobe?";
            return Err(broken(hint.to_owned()));
        }
        let name = |it: &Value| it.as_str().map(|it| it.chars().take(LONGEST_NAME).collect());
        let columns: Option<Vec<String>> = all
            .get("columns")
            .and_then(Value::as_array)
            .filter(|it| it.len() <= MOST_COLUMNS)
            .and_then(|it| it.iter().map(name).collect());
        let Some(columns) = columns else {
            return Err(broken("the samples do not say what they are of (`columns`)".to_owned()));
        };
        let host = all.get("host").and_then(name).filter(|it| !it.is_empty());
        Ok(Header { host: host.unwrap_or_else(|| "host".to_owned()), columns, all })
    }

    /// What is said once, as facts of the host.
    fn tell(&self, host: TrackId, out: &mut TraceBuilder) {
        let facts = [
            ("cores", "cpu_count"),
            ("cores_allowed", "cpu_allowed"),
            ("cores_quota", "cpu_quota"),
            ("memory_bytes", "memory_bytes"),
            ("every_ms", "sampled_every_ms"),
        ];
        for (theirs, ours) in facts {
            if let Some(value) = self.all.get(theirs).and_then(fact) {
                out.fact(host, ours, value);
            }
        }
        let gpus = self.all.get("gpus").and_then(Value::as_array).into_iter().flatten();
        for (number, gpu) in gpus.enumerate() {
            let of =
                ["name", "memory_bytes", "max_sm_clock_mhz", "power_limit_w", "power_limit_max_w"];
            for key in of {
                if let Some(value) = gpu.get(key).and_then(fact) {
                    out.fact(host, &format!("gpu {number}/{key}"), value);
                }
            }
        }
        let missing = self.all.get("missing").and_then(Value::as_array).into_iter().flatten();
        for it in missing {
            if let (Some(what), Some(why)) = (it["what"].as_str(), it.get("why").and_then(fact)) {
                let what: String = what.chars().take(LONGEST_NAME).collect();
                out.fact(host, &format!("missing {what}"), why);
            }
        }
    }
}

fn fact(value: &Value) -> Option<FactValue> {
    match value {
        Value::Number(it) => it
            .as_i64()
            .map(FactValue::Int)
            .or_else(|| it.as_f64().filter(|it| it.is_finite()).map(FactValue::Float)),
        Value::String(it) => Some(FactValue::Text(it.chars().take(LONGEST_NAME).collect())),
        _ => None,
    }
}

/// The profile's host. Profilers may know it by a longer or shorter name, or only by that of a
/// file; where there is only one, it is the one beside which samples were taken.
fn host_track(name: &str, out: &mut TraceBuilder) -> TrackId {
    let first = |it: &str| it.split('.').next().unwrap_or(it).to_ascii_lowercase();
    let hosts: Vec<(TrackId, String)> = out.hosts().map(|it| (it.0, first(it.1))).collect();
    let same = hosts.iter().find(|it| it.1 == first(name));
    match (same, hosts.as_slice()) {
        (Some(it), _) | (None, [it]) => it.0,
        _ => out.track(None, TrackKind::Host, name),
    }
}

/// Where a row lies in the trace; what has no place is told.
fn time(unix_ns: i64, out: &mut TraceBuilder) -> Option<Time> {
    let time = out.time_at(unix_ns);
    if time.is_none() {
        let is_lost = out.has_clock();
        out.note(NoteKind::BadTimestamp, || match is_lost {
            true => format!("a row of samples at {unix_ns} ns"),
            false => "samples next to a profile that does not say when it began".to_owned(),
        });
    }
    time
}

/// A row: its time, and its values into `row`. `None` where it is not whole or has another number
/// of values than there are columns.
fn parse(line: &[u8], n_columns: usize, row: &mut Vec<Option<f64>>) -> Option<i64> {
    let line = std::str::from_utf8(line).ok()?.trim();
    let mut cells = line.strip_prefix('[')?.strip_suffix(']')?.split(',').map(str::trim);
    let time = cells.next()?.parse().ok()?;
    row.clear();
    for cell in cells {
        if row.len() == n_columns {
            return None;
        }
        row.push(match cell {
            "null" => None,
            // Rust also reads words, as `inf`, which are no JSON.
            it if it.ends_with(|it: char| it.is_ascii_digit()) => {
                Some(it.parse::<f64>().ok().filter(|it| it.is_finite())?)
            }
            _ => return None,
        });
    }
    (row.len() == n_columns).then_some(time)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::ops::Range;
    use std::path::Path;
    use std::sync::Arc;

    use trace::{Dur, FactValue, NoteKind, Time, Trace, TraceBuilder, TrackKind};

    use super::{Hardware, parse};
    use crate::{Input, Source, SourceError};

    const HEADER: &str = r#"{"strobe": "hardware", "version": 1, "host": "box.example", "cores": 8,
        "gpus": [{"name": "NVIDIA T4", "max_sm_clock_mhz": 1590}],
        "columns": ["cpu/all", "memory/process"],
        "missing": [{"what": "cpu/clock", "why": "no clocks"}]}"#;

    fn file(rows: &str) -> String {
        format!("{}\n{rows}", HEADER.replace('\n', " "))
    }

    fn read(text: &str, out: &mut TraceBuilder) -> Result<(), SourceError> {
        let bytes = Arc::new(text.as_bytes().to_vec());
        assert!(Hardware.sniff(text.as_bytes()));
        Hardware.read(&Input { bytes, path: Path::new("hardware.jsonl") }, out)
    }

    fn alone(rows: &str) -> Trace {
        let mut out = TraceBuilder::new();
        read(&file(rows), &mut out).unwrap();
        out.finish()
    }

    fn values(trace: &Trace) -> Vec<(&str, i64, f64)> {
        trace.counters.iter().map(|it| (trace.track_name(it.track), it.time.0, it.value)).collect()
    }

    #[test]
    fn rows_become_counters_of_their_host() {
        let trace = alone("[1794806400000000000,0.5,null]\n[1794806400000000001, 1, 2e9 ]\n");
        assert_eq!(
            values(&trace),
            [("cpu/all", 0, 0.5), ("cpu/all", 1000, 1.0), ("memory/process", 1000, 2e9)]
        );
        assert_eq!(trace.origin_unix_ns, Some(1_794_806_400_000_000_000));
        assert_eq!((trace.window, trace.events.len()), (None, 0));
        let host = trace.tracks_of(TrackKind::Host).next().unwrap();
        assert_eq!(trace.track_name(host), "box.example");
        assert_eq!(trace.fact(host, "cpu_count"), Some(&FactValue::Int(8)));
        assert_eq!(trace.fact(host, "gpu 0/max_sm_clock_mhz"), Some(&FactValue::Int(1590)));
        let why = FactValue::Text("no clocks".to_owned());
        assert_eq!(trace.fact(host, "missing cpu/clock"), Some(&why));
    }

    #[test]
    fn where_files_lie_is_said_between_rows() {
        let trace = alone(
            "[1,1,1]\n{\"files\": [{\"at\": \"/\", \"file_system\": \"ext4\", \"files\": 1}]}\n[2,1,1]\n\
             {\"files\": [{\"at\": \"/data\", \"file_system\": \"nfs4\"}, {\"at\": 5}, \
             {\"at\": \"/\", \"file_system\": \"ext4\"}]}\n",
        );
        let facts: Vec<(&str, String)> = trace
            .facts
            .iter()
            .filter(|it| it.key.starts_with("files on"))
            .map(|it| (it.key.as_str(), it.value.to_string()))
            .collect();
        let text = |it: &str| it.to_owned();
        assert_eq!(facts, [("files on /data", text("nfs4")), ("files on /", text("ext4"))]);
        assert_eq!((trace.notes.len(), trace.counters.len()), (0, 4));
        let torn = alone("[1,1,1]\n{\"files\": [{\"at\"\n[2,1,1]\n{\"other\": 1}\n");
        assert_eq!((torn.notes[0].kind, torn.notes[0].count), (NoteKind::Malformed, 2));
    }

    /// A profile of a host, that began at a time.
    fn profile(host: &str, origin_unix_ns: Option<i64>) -> TraceBuilder {
        let mut out = TraceBuilder::new();
        let host = out.track(None, TrackKind::Host, host);
        let process = out.track(Some(host), TrackKind::Process, "/host:CPU");
        let thread = out.track(Some(process), TrackKind::Thread, "python");
        out.event(thread, "train", Time(0), Dur(1000));
        if let Some(it) = origin_unix_ns {
            out.place(Some(it));
        }
        struct NoArgs;
        impl trace::ArgSource for NoArgs {
            fn args(&self, _: u64, _: usize) -> Result<Vec<(String, FactValue)>, String> {
                Ok(Vec::new())
            }
            fn bytes(&self, _: Range<u64>) -> Result<Cow<'_, [u8]>, String> {
                Ok(Cow::Borrowed(&[]))
            }
        }
        out.source(Box::new(NoArgs));
        out
    }

    #[test]
    fn samples_join_the_clock_and_the_host_of_a_profile() {
        for host in ["box.example", "box", "BOX", "host"] {
            let mut out = profile(host, Some(1000));
            read(&file("[900,1,2]\n[5000,3,4]\n"), &mut out).unwrap();
            let trace = out.finish();
            let times: Vec<i64> = trace.counters.iter().map(|it| it.time.0).collect();
            assert_eq!(times, [-100_000, 4_000_000, -100_000, 4_000_000]);
            assert_eq!(trace.tracks_of(TrackKind::Host).count(), 1, "{host}");
            assert_eq!(trace.window, None, "the window is the profiler's");
        }
    }

    #[test]
    fn of_several_hosts_only_the_named_one_is_meant() {
        let mut out = profile("a", Some(0));
        out.track(None, TrackKind::Host, "b");
        read(&file("[900,1,2]\n"), &mut out).unwrap();
        let trace = out.finish();
        assert_eq!(trace.tracks_of(TrackKind::Host).count(), 3);
    }

    #[test]
    fn beside_a_profile_without_a_clock_samples_are_not_guessed() {
        let mut out = profile("box", None);
        read(&file("[900,1,2]\n[950,1,2]\n"), &mut out).unwrap();
        let trace = out.finish();
        assert_eq!((trace.counters.len(), trace.origin_unix_ns), (0, None));
        assert_eq!((trace.notes[0].kind, trace.notes[0].count), (NoteKind::BadTimestamp, 2));
    }

    #[test]
    fn damage_is_counted() {
        let trace = alone("[1,1,1]\n[2,1]\n[3,1,1,1]\nnonsense\n\n[4,inf,1]\n[5,1,1]\n[6,1");
        assert_eq!(trace.counters.len(), 4, "of two whole rows");
        let notes: Vec<_> = trace.notes.iter().map(|it| (it.kind, it.count)).collect();
        assert_eq!(notes, [(NoteKind::Truncated, 1), (NoteKind::Malformed, 4)]);
        let trace = alone("[1,1,1]\n[9223372036854775807,1,1]\n");
        assert_eq!(trace.notes[0].kind, NoteKind::BadTimestamp);
        assert_eq!(alone("[1,1,1]\n[2,1,1]").notes, [], "whole, but for the line's end");
    }

    #[test]
    fn a_header_that_says_nothing_is_an_error() {
        for (header, what) in [
            (r#"{"strobe": "hardware", "version": 2}"#, "not known"),
            (r#"{"strobe": "hardware", "version": 1}"#, "`columns`"),
            (r#"{"strobe": "hardware", "version": 1, "columns": [1]}"#, "`columns`"),
            (r#"{"strobe": "hardware", "versi"#, "cannot be read"),
        ] {
            let error = read(header, &mut TraceBuilder::new()).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn rows_are_numbers_and_null() {
        let mut row = Vec::new();
        assert_eq!(parse(b"[1,null,-2.5e-3]", 2, &mut row), Some(1));
        assert_eq!(row, [None, Some(-0.0025)]);
        for bad in ["[1.5,1]", "[1,NaN]", "[1,1", "1,1]", "[1,\"1\"]", "[1,1e999]", "[1,]", "[]"] {
            assert_eq!(parse(bad.as_bytes(), 1, &mut row), None, "{bad}");
        }
    }
}
