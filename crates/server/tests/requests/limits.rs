//! What clients can make the server do at once, and for how long.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use server::Limits;

use crate::KERAS;
use crate::served::{Served, serve_with};

fn serve(limits: Limits) -> Served {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let served = serve_with("127.0.0.1:0", &[root.join(KERAS)], limits);
    served.wait_for(0, "ready");
    served
}

const ENDLESS: &str =
    "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c";

/// Whether the server has closed the connection; waits until it has said something.
fn is_closed(stream: &mut impl Read) -> bool {
    match stream.read(&mut [0; 4096]) {
        Ok(n) => n == 0,
        Err(error) => [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error.kind()),
    }
}

#[test]
fn abandoned_queries_end_and_never_run_more_than_so_many_at_once() {
    // Only leaving ends these within the test.
    let served = serve(Limits { query_time: Duration::from_secs(3600), ..Limits::default() });
    let body = serde_json::json!({"query": ENDLESS}).to_string();
    let request = served.post_request("/api/runs/0/sql", &body);
    let clients: Vec<_> = (0..60)
        .map(|_| {
            let mut stream = served.connect();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    while served.turns.n_running() < 4 {
        thread::sleep(Duration::from_millis(5));
    }
    drop(clients);
    // Would wait for an hour behind queries that go on for nobody.
    assert_eq!(served.sql("select 1").status, 200);
    while served.turns.n_running() > 0 {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(served.turns.most_running(), 4);
}

#[test]
fn a_query_is_stopped_at_its_time_limit() {
    let served = serve(Limits { query_time: Duration::from_millis(50), ..Limits::default() });
    let answer = served.sql(ENDLESS);
    assert_eq!(answer.status, 422);
    assert!(answer.body.contains("took longer than 0.05 s"), "{answer:?}");
}

#[test]
fn who_sends_a_head_byte_by_byte_is_cut_off() {
    let served = serve(Limits { head_time: Duration::from_millis(200), ..Limits::default() });
    let mut stream = served.connect();
    stream.write_all(b"GET /api/runs HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
    // Each byte is progress, and none of them buys time.
    while stream.write_all(b"x").is_ok() {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(is_closed(&mut stream));
}

#[test]
fn who_says_nothing_is_cut_off_before_and_between_requests() {
    let served = serve(Limits { head_time: Duration::from_millis(200), ..Limits::default() });
    assert!(is_closed(&mut served.connect()));
    let mut stream = served.connect();
    let request = format!("GET /api/runs HTTP/1.1\r\nHost: localhost\r\n{}\r\n", served.bearer());
    stream.write_all(request.as_bytes()).unwrap();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).unwrap();
    assert!(answers.starts_with(b"HTTP/1.1 200"), "kept open until it was idle for too long");
}

#[test]
fn who_sends_a_body_byte_by_byte_is_cut_off() {
    let served = serve(Limits { body_time: Duration::from_millis(200), ..Limits::default() });
    let mut stream = served.connect();
    let request = served.post_request("/api/runs/0/sql", "");
    let request = request.replace("Content-Length: 0", "Content-Length: 100000");
    stream.write_all(request.as_bytes()).unwrap();
    while stream.write_all(b" ").is_ok() {
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn who_does_not_read_is_cut_off() {
    let served = serve(Limits { stall_time: Duration::from_millis(300), ..Limits::default() });
    let mut stream = served.connect();
    // Far more than sockets hold back.
    let query = "with recursive c(x) as (select 1 union all select x + 1 from c limit 10) \
                 select hex(zeroblob(1500000)) from c";
    let body = serde_json::json!({"query": query}).to_string();
    stream.write_all(served.post_request("/api/runs/0/sql", &body).as_bytes()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    // A closed connection takes no more of what we say.
    while stream.write_all(b"x").is_ok() {
        thread::sleep(Duration::from_millis(10));
    }
    // Who reads gets all of it.
    assert!(served.post("/api/runs/0/sql", &body).body.len() > 30_000_000);
}

#[test]
fn so_many_connections_and_the_others_wait() {
    let limits =
        Limits { connections: 2, head_time: Duration::from_millis(300), ..Limits::default() };
    let served = serve(limits);
    let idle: Vec<_> = (0..8).map(|_| served.connect()).collect();
    assert_eq!(served.get("/api/runs").status, 200, "after the idle ones were cut off");
    for mut stream in idle {
        assert!(is_closed(&mut stream));
    }
}

#[test]
fn at_most_so_many_runs_are_open() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/synthetic");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.is_dir())
        .collect();
    paths.sort();
    paths.truncate(5);
    assert_eq!(paths.len(), 5);
    let states = |served: &Served| -> Vec<String> {
        let list = served.get("/api/runs").json();
        let mut list = list.as_array().unwrap().clone();
        list.sort_by_key(|it| it["id"].as_u64());
        list.iter().map(|it| it["state"].as_str().unwrap().to_owned()).collect()
    };
    let n_open = |states: &[String]| states.iter().filter(|it| *it == "ready").count();

    let served = serve_with("127.0.0.1:0", &paths, Limits { runs: 2, ..Limits::default() });
    // All at once: they are read one after another.
    for run in 0..paths.len() {
        served.get(&format!("/api/runs/{run}/status"));
    }
    loop {
        let now = states(&served);
        assert!(n_open(&now) <= 2, "{now:?}");
        if !now.contains(&"opening".to_owned()) {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    // The least recently used one goes.
    served.wait_for(0, "ready");
    served.wait_for(1, "ready");
    served.wait_for(0, "ready");
    served.wait_for(2, "ready");
    assert_eq!(states(&served), ["ready", "unopened", "ready", "unopened", "unopened"]);

    // However small the memory, the one that is asked for is open.
    let served = serve_with("127.0.0.1:0", &paths, Limits { run_bytes: 1, ..Limits::default() });
    for run in 0..paths.len() {
        served.wait_for(run, "ready");
        let now = states(&served);
        assert_eq!((n_open(&now), now[run].as_str()), (1, "ready"), "{now:?}");
    }
}

#[test]
fn half_closed_clients_are_gone() {
    let served = serve(Limits { query_time: Duration::from_secs(3600), ..Limits::default() });
    let mut stream = served.connect();
    let body = serde_json::json!({"query": ENDLESS}).to_string();
    stream.write_all(served.post_request("/api/runs/0/sql", &body).as_bytes()).unwrap();
    while served.turns.n_running() == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    stream.shutdown(Shutdown::Write).unwrap();
    while served.turns.n_running() > 0 {
        thread::sleep(Duration::from_millis(5));
    }
}
