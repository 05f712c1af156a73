//! Chrome traces: which source claims what, whether all events arrive, and what another tool says of
//! the same traces.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed helper is a failed test, and says what it looked at"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::Value;
use session::{Bytes, Session};
use sources::{ALL, Input};
use trace::{EdgeKind, EventId, FactValue, NoteKind, OpKind, Trace, TraceBuilder, TrackKind};

fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(bytes: &Bytes, path: &Path) -> (Result<&'static str, sources::SourceError>, Trace) {
    let mut out = TraceBuilder::new();
    let source = sources::read(&Input { bytes: bytes.clone(), path }, &mut out);
    (source, out.finish())
}

fn of_text(text: &str) -> Trace {
    let bytes: Bytes = Arc::new(text.as_bytes().to_vec());
    let (source, trace) = read(&bytes, Path::new("worker0.pt.trace.json"));
    assert_eq!(source.unwrap(), "chrome");
    trace
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Every file of testdata and, where it is there, of the corpus beside this repository.
fn all_files() -> Vec<PathBuf> {
    let mut files = files_below(&repo().join("testdata"));
    let corpus = repo().join("../shared/corpus");
    match corpus.is_dir() {
        true => files.extend(files_below(&corpus)),
        false => eprintln!("only testdata: the corpus is not beside this repository"),
    }
    files
}

/// As many events as a plain JSON reader finds; `None` where it cannot read the file.
fn n_events(bytes: &[u8]) -> Option<u64> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let events = value.get("traceEvents").unwrap_or(&value).as_array()?;
    let is_event = |it: &&Value| {
        it["ph"].as_str().is_some_and(|it| ["X", "B", "b", "i", "I", "R", "n", "S"].contains(&it))
    };
    Some(events.iter().filter(is_event).count() as u64)
}

fn count(trace: &Trace, kind: NoteKind) -> u64 {
    trace.notes.iter().find(|it| it.kind == kind).map_or(0, |it| it.count)
}

#[test]
fn every_file_is_claimed_by_one_source_or_by_none() {
    let files = all_files();
    let claimed: Vec<(PathBuf, &str)> = files
        .par_iter()
        .filter_map(|path| {
            let bytes = session::load(path).ok().filter(|it| it.size() > 0)?;
            let all =
                bytes.in_memory().map_or_else(|| std::fs::read(path).unwrap(), <[u8]>::to_vec);
            let head = &all[..all.len().min(sources::HEAD)];
            let claims: Vec<&str> =
                ALL.iter().filter(|it| it.sniff(head)).map(|it| it.name()).collect();
            assert!(claims.len() <= 1, "{}: {claims:?}", path.display());
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_json = name.contains(".json");
            assert!(!(is_json && claims == ["xplane"]), "{}", path.display());
            let Some(&claim) = claims.first() else {
                let (source, _) = read(&bytes, path);
                let why = source.unwrap_err().to_string();
                assert!(why.contains("not a profile"), "{}: {why}", path.display());
                return None;
            };
            if claim == "chrome" {
                let (source, trace) = read(&bytes, path);
                assert_eq!(source.unwrap(), "chrome", "{}", path.display());
                if let Some(n) = n_events(&all) {
                    let kept = trace.events.len() as u64 + count(&trace, NoteKind::BadTimestamp);
                    assert_eq!(kept, n, "{}: {:?}", path.display(), trace.notes);
                }
                let (_, again) = read(&bytes, path);
                assert_eq!(trace.events.start, again.events.start);
                assert_eq!(trace.events.kind, again.events.kind);
                assert_eq!(trace.notes, again.notes);
                check_prefixes(&all);
            }
            Some((path.clone(), claim))
        })
        .collect();
    let of = |name: &str| claimed.iter().filter(|it| it.1 == name).count();
    eprintln!("{} files: chrome {}, xplane {}", files.len(), of("chrome"), of("xplane"));
    assert!(of("chrome") >= 1 && of("xplane") >= 20);
}

/// Of a small file every prefix can be read or is refused; of a larger one some.
fn check_prefixes(all: &[u8]) {
    if all.len() > 200_000 {
        return;
    }
    let step = (all.len() / 100).max(1);
    for n in (0..all.len()).step_by(step) {
        let bytes: Bytes = Arc::new(all[..n].to_vec());
        let (_, trace) = read(&bytes, Path::new("cut.json"));
        assert!(trace.events.len() <= all.len());
    }
}

/// A training of two steps on one GPU, times in microseconds of Unix time.
const TWO_STEPS: &str =
    include_str!("../../../testdata/chrome/torch_two_steps/worker0.pt.trace.json");

fn named(trace: &Trace, name: &str) -> Vec<EventId> {
    let all = (0..trace.events.len() as u32).map(EventId);
    all.filter(|&it| trace.name(it) == name).collect()
}

#[test]
fn a_trace_of_pytorch_says_what_it_means() {
    let trace = of_text(TWO_STEPS);
    assert_eq!(trace.notes, []);
    assert_eq!(trace.origin_unix_ns, Some(1_732_107_141_551_429_079));
    let kind = |name: &str| trace.events.kind[named(&trace, name)[0].row()];
    let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    assert_eq!(kind(loader), OpKind::InputWait);
    assert_eq!(kind("aten::mm"), OpKind::Op);
    assert_eq!(kind("MmBackward0"), OpKind::Op);
    assert_eq!(kind("ampere_sgemm_128x64_nn"), OpKind::Kernel);
    assert_eq!(kind("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)"), OpKind::Collective);
    assert_eq!(kind("Memcpy HtoD (Pageable -> Device)"), OpKind::CopyIn);
    assert_eq!(kind("MemoryAllocation"), OpKind::Memory);

    // The marker's number leaves its name, so that all steps have one; on the device it is drawn.
    let steps = named(&trace, "ProfilerStep");
    let numbers: Vec<i64> = trace.numbers.iter().map(|it| it.value).collect();
    assert_eq!((steps.len(), numbers), (2, vec![7, 8]));
    let drawn = named(&trace, "ProfilerStep#7");
    assert_eq!(trace.events.kind[drawn[0].row()], OpKind::Summary);

    // Times are exact to the picosecond, which no double holds.
    let kernel = named(&trace, "ampere_sgemm_128x64_nn")[0];
    assert_eq!(trace.events.start[kernel.row()].0, 40_921_001);
    assert_eq!(trace.events.dur[kernel.row()].0, 12_250_000);
    let detail = trace.detail(kernel);
    assert_eq!(detail.op.map(|it| trace.text(it)), Some("aten::mm"));
    let shape = detail.kernel.unwrap();
    assert_eq!((shape.grid, shape.block), ([128, 2, 1], [256, 1, 1]));
    assert_eq!((shape.registers, shape.static_shared_bytes), (Some(90), Some(1024)));
    let launch = trace.edges.cause(kernel, EdgeKind::Launch).unwrap();
    assert_eq!(trace.name(launch), "cudaLaunchKernel");
    let copy = trace.detail(named(&trace, "Memcpy HtoD (Pageable -> Device)")[0]);
    let memory = copy.copy_memory.map(|it| trace.text(it));
    assert_eq!((copy.copy_bytes, memory), (Some(4096), Some("pageable to device")));
    let backward = named(&trace, "MmBackward0")[0];
    assert_eq!(trace.edges.cause(backward, EdgeKind::Flow), Some(named(&trace, "aten::mm")[0]));
    let inner = named(&trace, "inner")[0];
    assert_eq!(trace.events.parent(inner), Some(named(&trace, "outer")[0]));
    assert_eq!(trace.events.dur[inner.row()].0, 2_000_000);

    // Arguments are found again, each event's own.
    let args = trace.args.of(named(&trace, "aten::mm")[0]);
    assert!(args.contains(&("Input Dims".into(), FactValue::Text("[[2, 3], [3, 4]]".into()))));
    assert!(trace.args.of(kernel).contains(&("correlation".into(), FactValue::Int(70))));
    let block = trace.args.of(named(&trace, "MemoryAllocation")[0]);
    assert!(block.contains(&("bytes_allocated".into(), FactValue::Int(1024))));

    let tracks: Vec<(&str, &str)> = trace
        .track_ids()
        .map(|it| (trace.tracks[it.row()].kind.name(), trace.track_name(it)))
        .collect();
    for expected in [
        ("host", "worker0 (rank 3)"),
        ("process", "python3 (9)"),
        ("thread", "thread 9 (python3)"),
        ("device", "GPU 0"),
        ("stream", "stream 7"),
        ("summary", "gpu_user_annotation of thread 7"),
        ("counter", "cuda:0 bytes_allocated"),
    ] {
        assert!(tracks.contains(&expected), "{expected:?} in {tracks:?}");
    }
    assert_eq!(analyses::run_info::frameworks(&trace), ["torch"]);
    assert_eq!(analyses::run_info::devices(&trace)[0].name, "NVIDIA A100-SXM4-40GB");
}

#[test]
fn damage_is_counted_and_nothing_else_is_lost() {
    let event = |ts: &str, more: &str| {
        format!(
            "{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":{ts},\"dur\":1{more}}}"
        )
    };
    let list = |events: &[String]| format!("{{\"traceEvents\":[{}]}}", events.join(","));
    let good: Vec<String> = (0..5).map(|it| event(&(100 + it).to_string(), "")).collect();
    let with = |bad: &str| {
        let mut all = good.clone();
        all.insert(2, bad.to_owned());
        let trace = of_text(&list(&all));
        (trace.events.len(), trace.notes.iter().map(|it| (it.kind, it.count)).collect::<Vec<_>>())
    };
    for bad in ["NaN", "1e308", "\"later\"", "null", "{}", "-1e40", "[1]"] {
        assert_eq!(with(&event(bad, "")), (5, vec![(NoteKind::BadTimestamp, 1)]), "{bad}");
    }
    for bad in ["7", "\"text\"", "[[]]", "null", "{\"ph\":\"?\",\"name\":\"what\"}"] {
        assert_eq!(with(bad), (5, vec![(NoteKind::Malformed, 1)]), "{bad}");
    }
    // Two of a key: the last one counts.
    assert_eq!(with(&event("1", ",\"ts\":102")), (6, vec![]));
    assert_eq!(with(&event("102", ",\"args\":{\"a\":NaN,\"b\":Infinity}")), (6, vec![]));
    let deep = format!(",\"args\":{{\"a\":{}1{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(with(&event("102", &deep)), (6, vec![]));
    // A key without its colon: the event is lost, the next one is found.
    assert_eq!(with("{\"ph\" \"X\"}"), (5, vec![(NoteKind::Malformed, 1)]));
    // A blank name, a name that is no UTF-8, a byte order mark.
    let text = format!("\u{FEFF}{}", list(&good));
    assert_eq!(of_text(&text).events.len(), 5);
    // Cut off inside the last event: what came before is there.
    let whole = list(&good);
    let trace = of_text(&whole[..whole.len() - 20]);
    assert_eq!((trace.events.len(), count(&trace, NoteKind::CutOff)), (4, 1));
    // An `E` without a `B`, and the other way round.
    let halves = "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":3},{\"ph\":\"B\",\"name\":\"b\",\"pid\":1,\"tid\":2,\"ts\":3}";
    assert_eq!(with(halves), (6, vec![(NoteKind::Truncated, 1), (NoteKind::Malformed, 1)]));
    // Overlaps are kept.
    assert_eq!(with(&event("101.5", "")), (6, vec![(NoteKind::BadlyNested, 2)]));
    let utf16: Vec<u8> = list(&good).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bytes: Bytes = Arc::new(utf16);
    assert!(read(&bytes, Path::new("utf16.json")).0.is_err());
}

/// More than one piece: the same events as one by one, at whatever byte the pieces are cut.
#[test]
fn a_long_list_is_read_in_pieces() {
    let mut text = String::from("{\"schemaVersion\": 1, \"traceEvents\": [");
    let n = 60_000;
    for it in 0..n {
        // A text that looks like the border of an event, and one that nests.
        let args = r#"{"a": "}, {\"ph\": \"X\"", "b": [{"name": 1}, {"name": 2}], "c": [{"x": {}}, {"ph": "X", "ts": 1, "pid": 1, "tid": 1, "name": "no"}]}"#;
        text.push_str(&format!(
            "{}{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"op{}\", \"pid\": 1, \"tid\": {}, \"ts\": {}.5, \"dur\": 0.25, \"args\": {args}}}",
            if it == 0 { "" } else { ",\n" },
            it % 7,
            it % 3,
            1000 + it
        ));
    }
    text.push_str("]}");
    assert!(text.len() > 3 * (4 << 20));
    let trace = of_text(&text);
    assert_eq!(trace.notes, []);
    assert_eq!(trace.events.len(), n);
    assert_eq!(named(&trace, "op3").len(), n / 7);
    let last = EventId((n - 1) as u32);
    assert_eq!(trace.args.of(last).len(), 3);
    let starts: i64 = trace.events.start.iter().map(|it| it.0).sum();
    assert_eq!(starts, (0..n as i64).sum::<i64>() * 1_000_000);
}

/// Columns of TraceLens's `gpu_timeline.csv`, in milliseconds.
fn golden(path: &Path) -> Vec<(String, f64)> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().skip(1).filter_map(|it| {
        let mut cells = it.split(',');
        Some((cells.next()?.to_owned(), cells.next()?.parse().ok()?))
    });
    lines.collect()
}

/// Traces whose golden is not of them, or counts otherwise, and why.
const DIFFERENT: [(&str, &str); 5] = [
    ("tl-mi300x-normalization", "made before TraceLens counted memsets as work"),
    ("tl-mi300x-sd35-large", "made before TraceLens counted memsets as work"),
    ("tl-h100-qwen05b", "of a shorter recording of the same model: 34.9 ms against 49.7 ms"),
    ("tl-mi300x-qwen05b", "of a shorter recording of the same model: 33.1 ms against 47.1 ms"),
    ("tl-mi300x8-resnet-ddp-train", "of another recording: 41.8 ms, in which nothing communicates"),
];

#[test]
fn the_timeline_of_the_gpu_is_that_of_tracelens() {
    let corpus = repo().join("../shared/corpus/kineto");
    if !corpus.is_dir() {
        eprintln!("skipped: the corpus is not beside this repository");
        return;
    }
    let goldens = files_below(&corpus);
    let mut n_compared = 0;
    for path in goldens.iter().filter(|it| it.ends_with("gpu_timeline.csv")) {
        let below = path.strip_prefix(&corpus).unwrap();
        let name = below.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        if DIFFERENT.iter().any(|it| it.0 == name) {
            continue;
        }
        let traces = std::fs::read_dir(corpus.join(&name)).unwrap();
        let mut traces = traces.map(|it| it.unwrap().path()).filter(|it| it.is_file());
        let Some(trace_path) = traces.next() else { continue };
        let session = Session::open(&trace_path).unwrap();
        let trace = session.trace();
        let spans = |kinds: &[OpKind]| -> Vec<(i64, i64)> {
            let mut spans = Vec::new();
            for track in trace.tracks_of(TrackKind::Stream) {
                for &kind in kinds {
                    spans.extend(trace.rows_of(track, kind).map(|row| {
                        let start = trace.events.start[row].0;
                        (start, start + trace.events.dur[row].0)
                    }));
                }
            }
            spans
        };
        let compute = &[OpKind::Kernel, OpKind::Memset][..];
        let copies = &[OpKind::CopyIn, OpKind::CopyOut, OpKind::CopyOnDevice, OpKind::CopyPeer][..];
        let all = spans(&[compute, copies, &[OpKind::Collective]].concat());
        let total = all.iter().map(|it| it.1).max().unwrap_or(0)
            - all.iter().map(|it| it.0).min().unwrap_or(0);
        let busy = covered(all);
        for (of, theirs_ms) in golden(path) {
            let ours_ps = match of.as_str() {
                "computation_time" => covered(spans(compute)),
                "total_comm_time" => covered(spans(&[OpKind::Collective])),
                "total_memcpy_time" => covered(spans(copies)),
                "busy_time" => busy,
                "idle_time" => total - busy,
                "total_time" => total,
                _ => continue,
            };
            let ours_ms = ours_ps as f64 / 1e9;
            // Theirs went through doubles of Unix microseconds, which step by 250 ns.
            let slack = 1e-3 + theirs_ms * 1e-4;
            assert!((ours_ms - theirs_ms).abs() <= slack, "{name} {of}: {ours_ms} and {theirs_ms}");
            n_compared += 1;
        }
    }
    assert!(n_compared >= 42, "{n_compared}");
}

/// Length of the union.
fn covered(mut spans: Vec<(i64, i64)>) -> i64 {
    spans.sort_unstable();
    let (mut sum, mut until) = (0, i64::MIN);
    for (from, to) in spans {
        sum += (to - from.max(until)).max(0);
        until = until.max(to);
    }
    sum
}

#[test]
fn a_trace_is_found_by_what_it_is_and_a_profile_beside_it_wins() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("notes.json", b"{\"traceless\": true}");
    assert!(Session::open(folder.path()).is_err());
    write("any.json", TWO_STEPS.as_bytes());
    let session = Session::open(folder.path()).unwrap();
    assert_eq!(session.run.files.len(), 1, "{:?}", session.run.files);
    assert_eq!(session.report().run.frameworks, ["torch"]);
    let profile = files_below(&repo().join("testdata/captured/keras_fit"));
    let profile = profile.iter().find(|it| it.to_string_lossy().contains("xplane.pb")).unwrap();
    std::fs::copy(profile, folder.path().join(profile.file_name().unwrap())).unwrap();
    let session = Session::open(folder.path()).unwrap();
    assert_eq!(session.run.files.len(), 1);
    assert_eq!(session.report().run.frameworks, ["tensorflow"]);
}

/// A training of ten steps of 100 ms, of which each waits 60 ms for its batch and computes 30 ms.
fn waits_for_input() -> String {
    let mut events = vec![
        r#"{"ph":"M","name":"process_name","pid":9,"tid":0,"args":{"name":"python3"}}"#.to_owned(),
        r#"{"ph":"M","name":"process_labels","pid":0,"tid":0,"args":{"labels":"GPU 0"}}"#
            .to_owned(),
    ];
    let mut event = |cat: &str,
                     name: &str,
                     on: (u32, u32),
                     start_ms: u32,
                     dur_us: u32,
                     args: &str| {
        events.push(format!(
            r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":{},"tid":{},"ts":{},"dur":{dur_us},"args":{{{args}}}}}"#,
            on.0,
            on.1,
            1_732_107_141_000_000_u64 + u64::from(start_ms) * 1000,
        ));
    };
    let (main, gpu) = ((9, 9), (0, 7));
    for step in 0..10 {
        let at = step * 100;
        event("user_annotation", &format!("ProfilerStep#{step}"), main, at, 99_900, "");
        let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        event("cpu_op", loader, main, at, 60_000, "");
        event("cpu_op", "aten::mm", main, at + 62, 200, &format!(r#""External id":{}"#, step + 1));
        let ids = format!(r#""correlation":{},"External id":{}"#, step + 1, step + 1);
        event("cuda_runtime", "cudaLaunchKernel", main, at + 62, 100, &ids);
        let args =
            format!(r#"{ids},"grid":[1024,1,1],"block":[256,1,1],"registers per thread":32"#);
        event("kernel", "ampere_sgemm_128x64_nn", gpu, at + 65, 30_000, &args);
        event("cuda_runtime", "cudaStreamSynchronize", main, at + 65, 30_100, "");
    }
    format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, events.join(","))
}

#[test]
fn a_slow_loader_is_named_with_pytorchs_own_edit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.pt.trace.json");
    std::fs::write(&path, waits_for_input()).unwrap();
    let report = Session::open(&path).unwrap().report();
    let json = session::report::json::as_json(&report);
    assert_eq!(json["run"]["frameworks"], serde_json::json!(["torch"]));
    assert_eq!(
        (&json["steps"]["count"], &json["steps"]["found_by"]),
        (&10.into(), &"markers".into())
    );
    let share = |category: &str| {
        let parts = json["breakdown"].as_array().unwrap();
        let part = parts.iter().find(|it| it["category"] == category);
        part.map_or(0.0, |it| it["share"].as_f64().unwrap())
    };
    assert!((share("input") - 0.6).abs() < 0.01, "{}", json["breakdown"]);
    assert!((share("compute") - 0.3).abs() < 0.01, "{}", json["breakdown"]);
    let first = &json["findings"][0];
    assert_eq!(first["rule"], "input-python", "{}", json["findings"]);
    let edits: Vec<&str> =
        first["fix"].as_array().unwrap().iter().filter_map(|it| it["edit"].as_str()).collect();
    assert_eq!(
        edits,
        ["loader = DataLoader(data, batch_size, num_workers=4, persistent_workers=True)"]
    );
    let text = json["findings"].to_string();
    for foreign in ["tf.", "TensorFlow", "Keras", "jax", "XLA"] {
        assert!(!text.contains(foreign), "{foreign} in {text}");
    }
}

/// The first finding of a real capture, and the changes that it advises.
fn first_finding(name: &str) -> (String, Vec<String>) {
    let path = repo().join("testdata/chrome").join(name);
    let json = session::report::json::as_json(&Session::open(&path).unwrap().report());
    let first = &json["findings"][0];
    let fixes = first["fix"].as_array().unwrap().iter();
    let changes = fixes.map(|it| it["change"].as_str().unwrap().to_owned()).collect();
    (
        format!("{} {}", first["rule"].as_str().unwrap(), first["severity"].as_str().unwrap()),
        changes,
    )
}

#[test]
fn real_captures_of_pytorch_have_their_planted_cause_first() {
    let check = |name: &str, finding: &str, changes: &[&str]| {
        assert_eq!(
            first_finding(name),
            (finding.to_owned(), changes.iter().map(|it| (*it).to_owned()).collect())
        );
    };
    check("torch_unrolled", "eager-ops high", &["vectorize", "compile-step"]);
    check("torch_slow_loader", "input-python high", &["input-workers", "cheaper-input"]);
    check("torch_recompiled", "recompilation high", &["relax-shapes", "pad-shapes"]);
    check("healthy_torch", "compute-bound low", &["fuse"]);
}

/// A profiler that counts range by range says what it counted, not when.
#[test]
fn counters_of_kernels_are_metrics() {
    let range = |ts: i64, flops: i64| {
        format!(
            r#"{{"ph":"X","cat":"cuda_profiler_range","name":"gemm","pid":0,"tid":0,"ts":{ts},
                "dur":10,"args":{{"smsp__inst_executed.sum":{flops},"note":"none"}}}}"#
        )
    };
    let trace = of_text(&format!(r#"{{"traceEvents":[{},{}]}}"#, range(100, 5), range(200, 7)));
    let found: Vec<_> = trace
        .metrics
        .iter()
        .map(|it| (trace.text(it.of), it.nth, trace.text(it.name), it.value))
        .collect();
    let metric = "smsp__inst_executed.sum";
    assert_eq!(found, [("gemm", 0, metric, 5.0), ("gemm", 1, metric, 7.0)]);
}

/// Twenty layers look like a loop over examples: nothing in a trace tells them apart.
#[test]
fn layers_are_not_promised_as_a_loop() {
    let mut events = Vec::new();
    let mut event = |cat: &str, name: &str, ts: i64, dur: i64| {
        events.push(format!(
            r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":7,"tid":7,"ts":{ts},"dur":{dur}}}"#
        ));
    };
    for step in 0..6 {
        let at = 1000 + step * 1300;
        event("user_annotation", &format!("ProfilerStep#{step}"), at, 1300);
        for layer in 0..20 {
            event("cpu_op", "aten::linear", at + layer * 60, 6);
            event("cpu_op", "aten::relu", at + layer * 60 + 30, 6);
        }
    }
    let text = format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, events.join(","));
    let tables = analyses::Tables::new(Arc::new(of_text(&text)));
    let diagnosis = rules::diagnose(&tables);
    let cause = diagnosis.causes.iter().find(|it| it.rule == "eager-ops").unwrap();
    let changes: Vec<&str> = cause.finding.fix.iter().map(|it| it.change.name()).collect();
    assert_eq!(changes.first(), Some(&"compile-step"), "{changes:?}");
    let loops = cause.finding.fix.iter().find(|it| it.change.name() == "vectorize").unwrap();
    assert_eq!(loops.gain, None);
    assert!(loops.why.as_deref().is_some_and(|it| it.contains("layers of the model")));
}
