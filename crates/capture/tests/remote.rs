//! Captures from real gRPC servers, good and hostile, on loopback.

#![expect(clippy::unwrap_used, reason = "a failed helper is a failed test")]

mod servers;

use std::path::{Path, PathBuf};
use std::time::Duration;

use capture::remote::{Captured, Options, RemoteError, Said, Server, capture};

use self::servers::{
    Reply, dead_port, drips, profiler, raw_grpc, real_profile, talks_http1, talks_nothing,
};

fn options() -> Options {
    Options {
        duration: Duration::from_millis(50),
        wait: Duration::from_secs(3),
        ..Options::default()
    }
}

/// For those that succeed in the end, on however slow a machine.
fn patient() -> Options {
    Options { wait: Duration::from_secs(60), ..options() }
}

struct Run {
    folder: tempfile::TempDir,
    outcomes: Vec<Result<Captured, RemoteError>>,
    said: Vec<String>,
}

fn run(servers: &[Server], options: &Options) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let said = std::cell::RefCell::new(Vec::new());
    let say = |server: &Server, it: Said<'_>| {
        let text = match it {
            Said::Waiting(error) => format!("waiting: {error}"),
            Said::Recording { common_start } => format!("recording, together {common_start}"),
        };
        said.borrow_mut().push(format!("{server} {text}"));
    };
    let outcomes = capture(servers, options, folder.path(), &say).unwrap();
    assert_eq!(outcomes.len(), servers.len());
    Run { folder, outcomes, said: said.into_inner() }
}

fn run_one(server: Server, options: &Options) -> (Run, Result<Captured, RemoteError>) {
    let mut run = run(&[server], options);
    let outcome = run.outcomes.remove(0);
    (run, outcome)
}

/// Everything below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

/// The capture fails, and leaves nothing behind, not even folders.
fn fails(server: Server, options: &Options) -> RemoteError {
    let (run, outcome) = run_one(server, options);
    let left: Vec<_> = std::fs::read_dir(run.folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    outcome.unwrap_err()
}

#[test]
fn a_profile_is_kept_byte_for_byte() {
    let (server, asked) = profiler(|_| Reply::profile(real_profile()));
    let (run, outcome) = run_one(server.clone(), &options());
    let captured = outcome.unwrap();
    assert_eq!(std::fs::read(run.folder.path().join(&captured.file)).unwrap(), real_profile());
    assert_eq!(captured.bytes, real_profile().len() as u64);
    assert_eq!((captured.attempts, captured.common_start_unix_ns), (1, None));
    let name = format!("127.0.0.1_{}", server.port);
    let parts: Vec<String> =
        captured.file.iter().map(|it| it.to_string_lossy().into_owned()).collect();
    assert_eq!(parts[..4], ["profile", &name, "plugins", "profile"]);
    assert_eq!(parts[5], format!("{name}.xplane.pb"));
    assert_eq!(files(run.folder.path()).len(), 1);

    let asked = asked.lock().unwrap();
    let options = asked[0].opts.unwrap();
    assert!(asked[0].emit_xspace);
    assert_eq!((asked[0].duration_ms, options.duration_ms, options.version), (50, 50, 1));
    assert_eq!((options.host_tracer_level, options.device_tracer_level), (2, 1));
    assert_eq!((options.python_tracer_level, options.start_timestamp_ns), (0, 0));
}

#[test]
fn hosts_begin_together_and_fail_alone() {
    let (first, asked_first) = profiler(|_| Reply::profile(real_profile()));
    let (second, asked_second) = profiler(|_| Reply::profile(real_profile()));
    let dead = dead_port();
    let run = run(&[first, dead.clone(), second], &options());
    let start = run.outcomes[0].as_ref().unwrap().common_start_unix_ns;
    assert!(start.is_some());
    assert_eq!(run.outcomes[2].as_ref().unwrap().common_start_unix_ns, start);
    assert!(matches!(run.outcomes[1], Err(RemoteError::NotThere { .. })));
    assert_eq!(files(run.folder.path()).len(), 2);
    for asked in [asked_first, asked_second] {
        let options = asked.lock().unwrap()[0].opts.unwrap();
        assert_eq!(Some(options.start_timestamp_ns), start);
    }
    let waiting = format!("{dead} waiting: nothing listens there");
    assert!(run.said.iter().any(|it| it.starts_with(&waiting)), "{:?}", run.said);
}

#[test]
fn one_that_cannot_yet_is_asked_again() {
    let (server, asked) = profiler(|attempt| match attempt {
        0 => Reply::status(tonic::Code::Unavailable, "not yet"),
        _ => Reply::profile(real_profile()),
    });
    let (_, outcome) = run_one(server, &patient());
    assert_eq!(outcome.unwrap().attempts, 2);
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[test]
fn one_that_comes_late_is_waited_for() {
    let (server, asked) = servers::profiler_after(Duration::from_millis(300));
    let (run, outcome) = run_one(server, &patient());
    // Whether it was there at the first look is up to the machine; that it was captured is not.
    assert!(outcome.is_ok(), "{:?} {outcome:?}", run.said);
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[test]
fn a_busy_profiler_is_told_as_such() {
    let busy = |code| profiler(move |_| Reply::status(code, "Another profiling session active.")).0;
    let error = fails(busy(tonic::Code::AlreadyExists), &options());
    assert!(matches!(error, RemoteError::Busy), "{error}");
    assert!(error.to_string().contains("another profiling session is active"));
    let error = fails(busy(tonic::Code::Unavailable), &options());
    assert!(matches!(error, RemoteError::Busy), "{error}");
    // And it may end while we wait.
    let (server, _) = profiler(|attempt| match attempt {
        0 => Reply::status(tonic::Code::AlreadyExists, "Another profiling session active."),
        _ => Reply::profile(real_profile()),
    });
    let (run, outcome) = run_one(server, &patient());
    assert_eq!(outcome.unwrap().attempts, 2);
    assert!(run.said.iter().any(|it| it.contains("waiting: another profiling session")));
}

#[test]
fn what_is_no_profile_is_not_kept() {
    let error = fails(profiler(|_| Reply::profile(b"<html>".repeat(1000))).0, &options());
    assert!(matches!(error, RemoteError::Garbage { .. }), "{error}");
    let cut = real_profile()[..real_profile().len() / 2].to_vec();
    let error = fails(profiler(move |_| Reply::profile(cut.clone())).0, &options());
    assert!(matches!(error, RemoteError::Garbage { .. }), "{error}");
    let error = fails(raw_grpc(b"\xFF\xFE no protobuf at all".to_vec()), &options());
    assert!(matches!(error, RemoteError::Garbage { .. }), "{error}");
}

#[test]
fn empty_answers_differ() {
    let error = fails(profiler(|_| Reply::Empty { empty_trace: true }).0, &options());
    assert!(matches!(error, RemoteError::Empty), "{error}");
    let error = fails(profiler(|_| Reply::Empty { empty_trace: false }).0, &options());
    assert!(matches!(error, RemoteError::Elsewhere), "{error}");
    assert!(error.to_string().contains("to its own disk"));
}

#[test]
fn the_limit_of_bytes_holds() {
    let limit = Options { max_bytes: 10_000, ..options() };
    let error = fails(profiler(|_| Reply::profile(real_profile())).0, &limit);
    assert!(matches!(error, RemoteError::TooLarge { limit: 10_000, .. }), "{error}");
    // A stream that never ends; joined, it would be 10 GB and more.
    let limit = Options { max_bytes: 20 << 20, ..options() };
    let error = fails(profiler(|_| Reply::Endless).0, &limit);
    assert!(matches!(error, RemoteError::TooLarge { .. }), "{error}");
}

#[test]
fn a_drip_ends_at_the_deadline() {
    let short = Options { grace: Duration::from_millis(500), ..options() };
    match fails(drips(), &short) {
        RemoteError::TooSlow { bytes, .. } => assert!(bytes < 1_000_000),
        other => panic!("{other}"),
    }
}

#[test]
fn other_services_are_no_profilers() {
    for server in [talks_http1(), servers::other_service(), servers::http2_without_grpc()] {
        let error = fails(server, &options());
        assert!(matches!(error, RemoteError::NoProfiler { .. }), "{error}");
        assert!(error.to_string().contains("tf.profiler.experimental.server.start"), "{error}");
    }
    let error = fails(talks_nothing(), &options());
    assert!(matches!(error, RemoteError::Silent), "{error}");
}

#[test]
fn refusals_are_passed_on() {
    let refuses =
        profiler(|_| Reply::status(tonic::Code::Internal, "no CUPTI: 100%\x1b[31m of it")).0;
    let error = fails(refuses, &options());
    assert_eq!(error.to_string(), "the server could not: INTERNAL: no CUPTI: 100% [31m of it");
}
