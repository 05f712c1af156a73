//! Whoever asks, and however: refused or served, nothing leaks, nothing hangs.

#![expect(clippy::unwrap_used, reason = "what cannot be asked is a failed test")]

mod growing;
mod limits;
mod served;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use server::{Limits, Runs, Server};

use served::{Answer, serve, serve_on, serve_with};

const KERAS: &str = "testdata/captured/keras_fit";
const TWO_HOSTS: &str = "testdata/synthetic/two_hosts";

#[test]
fn only_our_own_names_are_hosts() {
    let served = serve(&[KERAS]);
    let ask = |host: &str| {
        let bearer = served.bearer();
        served.ask(&format!(
            "GET /api/runs HTTP/1.1\r\nHost: {host}\r\n{bearer}Connection: close\r\n\r\n"
        ))
    };
    for own in ["127.0.0.1", "localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:7878", "[::1]"] {
        assert_eq!(ask(own).status, 200, "{own}");
    }
    // A name that was pointed at 127.0.0.1 is how a foreign page would reach us.
    for foreign in ["evil.example", "evil.example:7878", "127.0.0.1.evil.example", "", "[", "0"] {
        let answer = ask(foreign);
        assert_eq!(answer.status, 403, "{foreign}: {answer:?}");
        assert!(!answer.body.contains("keras"), "{answer:?}");
    }
    let page = served.ask("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(page.status, 403, "not even the page");
    let none = served.ask("GET /api/runs HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!([400, 403].contains(&none.status), "{none:?}");
}

#[test]
fn other_sites_may_not_ask() {
    let served = serve(&[KERAS]);
    let own = format!("Origin: http://{}\r\n", served.address);
    assert_eq!(served.get_with("/api/runs", &own).status, 200);
    for foreign in [
        "Origin: http://evil.example\r\n".to_owned(),
        "Origin: null\r\n".to_owned(),
        // The same host on another port is another program's page.
        "Origin: http://127.0.0.1:1\r\n".to_owned(),
        format!("Origin: https://{}\r\n", served.address),
        "Sec-Fetch-Site: cross-site\r\n".to_owned(),
    ] {
        let answer = served.get_with("/api/runs", &foreign);
        assert_eq!(answer.status, 403, "{foreign}");
        assert!(!answer.head.contains("access-control-allow"), "{answer:?}");
    }
    // A link from elsewhere to the page itself is fine: nobody but the user sees it.
    assert_eq!(served.get_with("/", "Sec-Fetch-Site: cross-site\r\n").status, 200);
}

#[test]
fn a_token_is_needed_on_loopback_and_elsewhere() {
    for bind in ["127.0.0.1:0", "0.0.0.0:0"] {
        let served = serve_on(bind, &[KERAS]);
        let token = &served.token;
        assert_eq!(token.len(), 32);
        let ask = |path: &str, headers: &str| served.get_without_token(path, headers);
        for path in ["/api/runs", "/api/rules", "/api/runs/0/report", "/api/runs/0/tables/op_time"]
        {
            let refused = ask(path, "");
            assert_eq!(refused.status, 403, "{bind} {path}");
            assert!(refused.body.contains("token"), "{refused:?}");
            assert!(
                !refused.body.contains(token) && !refused.body.contains("keras"),
                "{refused:?}"
            );
        }
        let wrong_case = token.to_uppercase().replace('0', "O");
        for wrong in ["", "x", &token[1..], &format!("{token}0"), &wrong_case] {
            let header = format!("Authorization: Bearer {wrong}\r\n");
            assert_eq!(ask("/api/runs", &header).status, 403, "{wrong}");
            assert_eq!(ask(&format!("/api/runs?token={wrong}"), "").status, 403, "{wrong}");
            assert_eq!(ask("/api/runs", &format!("Cookie: token={token}\r\n")).status, 403);
        }
        assert_eq!(ask("/api/runs", &served.bearer()).status, 200);
        assert_eq!(ask(&format!("/api/runs?token={token}"), "").status, 200);
        // The page holds nothing of the user's; it asks with the token it was opened with.
        assert_eq!(ask("/", "").status, 200);
    }
    assert_ne!(serve(&[KERAS]).token, serve(&[KERAS]).token);
}

#[test]
fn every_answer_keeps_browsers_strict() {
    let served = serve(&[KERAS]);
    let answers = [
        ("the page", 200, served.get("/")),
        ("data", 200, served.get("/api/runs")),
        ("a report", 200, served.get("/api/runs/0/report")),
        ("no such question", 404, served.get("/api/nothing")),
        ("no such page", 404, served.get("/nothing")),
        ("no token", 403, served.get_without_token("/api/runs", "")),
        ("another site", 403, served.get_with("/api/runs", "Origin: http://evil.example\r\n")),
        ("a method that is not", 405, served.post("/api/runs/0/report", "{}")),
        ("and the other way", 405, served.get("/api/runs/0/sql")),
        ("no SQL", 422, served.sql("selec 1")),
        ("no JSON", 400, served.post("/api/runs/0/sql", "{")),
        ("too long", 413, served.sql(&format!("select '{}'", "x".repeat(300 << 10)))),
    ];
    for (what, status, answer) in answers {
        let Answer { status: found, head, .. } = answer;
        assert_eq!(found, status, "{what}: {head}");
        for header in [
            "content-security-policy: default-src 'none'",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
            "cross-origin-opener-policy: same-origin",
        ] {
            assert!(head.contains(header), "{what}: {head}");
        }
        let kept = if what == "the page" { "cache-control: no-cache" } else { "no-store" };
        assert!(head.contains(kept), "{what}: {head}");
    }
}

#[test]
fn no_path_leads_out() {
    let served = serve(&[KERAS]);
    for path in [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/Cargo.toml",
        "/assets/../../Cargo.toml",
        "/assets/..%5c..%5cCargo.toml",
        "//etc/passwd",
        "/index.html%00.js",
        "/api/runs/0/tables/../../../Cargo.toml",
        "/api/runs/0/tables/..%2f..%2fCargo.toml",
        "/api/../Cargo.toml",
        "/api/runs/-1/report",
        "/api/runs/1/report",
        "/api/runs/18446744073709551616/report",
        "/api/runs/0x0/report",
        "/api/runs//report",
    ] {
        let answer = served.get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {answer:?}");
        assert!(!answer.body.contains("[workspace]") && !answer.body.contains("root:"), "{path}");
    }
}

#[test]
fn malformed_questions_get_an_answer_in_words() {
    let served = serve(&[TWO_HOSTS]);
    for (path, status) in [
        ("/api/runs/0/tables/nothing", 404),
        ("/api/runs/0/tables/step?limit=-1", 400),
        ("/api/runs/0/tables/step?offset=99999999999999999999999", 400),
        ("/api/runs/0/timeline/tiles", 400),
        ("/api/runs/0/timeline/tiles?level=9&tile=0&tracks=1", 400),
        ("/api/runs/0/timeline/tiles?level=200&tile=0&tracks=1", 400),
        ("/api/runs/0/timeline/tiles?level=30&tile=x&tracks=1", 400),
        ("/api/runs/0/timeline/tiles?level=30&tile=0&tracks=a,b", 400),
        ("/api/runs/0/timeline/tiles?level=30&tile=0&tracks=4000000000", 404),
        ("/api/runs/0/timeline/range?from=5&to=1", 400),
        ("/api/runs/0/timeline/range?from=%FF&to=1", 400),
        ("/api/runs/0/timeline/search", 400),
        ("/api/runs/0/events/4294967295", 404),
        ("/api/runs/0/events/-1", 400),
        ("/api/runs/0/nothing", 404),
    ] {
        let answer = served.get(path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        let said: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert!(said["error"].as_str().is_some_and(|it| it.len() > 8), "{path}: {said}");
    }
    // Any number is answered as far as it goes: beyond all events there is nothing.
    for path in [
        "/api/runs/0/timeline/tiles?level=63&tile=9223372036854775807&tracks=3",
        "/api/runs/0/timeline/tiles?level=10&tile=-9223372036854775808&tracks=3,3,,3",
        "/api/runs/0/timeline/range?from=-9223372036854775808&to=9223372036854775807",
        "/api/runs/0/timeline/search?q=&limit=18446744073709551615",
        "/api/runs/0/tables/step?offset=18446744073709551615&limit=18446744073709551615",
    ] {
        assert_eq!(served.get(path).status, 200, "{path}");
    }
    assert_eq!(served.post("/api/runs/0/report", "{}").status, 405);
    assert_eq!(served.get("/api/runs/0/sql").status, 405);
}

#[test]
fn queries_only_read_and_only_so_much() {
    let served = serve(&[KERAS]);
    let good = served.sql("select count(*) from event");
    assert_eq!(good.status, 200, "{good:?}");
    for bad in [
        "",
        "selec 1",
        "select * from nothing",
        "delete from event",
        "create table x(y)",
        "attach database '/etc/passwd' as x",
        "pragma writable_schema=1",
        "select readfile('/etc/passwd')",
        "select load_extension('x')",
        "select ?",
    ] {
        let answer = served.sql(bad);
        assert_eq!(answer.status, 422, "{bad}: {answer:?}");
        assert!(answer.body.contains("\"error\""), "{bad}: {answer:?}");
    }
    for (body, status) in
        [("", 400), ("{", 400), ("[]", 422), ("{\"query\": 1}", 422), ("{\"limit\": 3}", 422)]
    {
        assert_eq!(served.post("/api/runs/0/sql", body).status, status, "{body}");
    }
    let cut = served.post("/api/runs/0/sql", r#"{"query": "select id from event", "limit": 5}"#);
    let said: serde_json::Value = serde_json::from_str(&cut.body).unwrap();
    assert_eq!((said["rows"].as_array().unwrap().len(), &said["truncated"]), (5, &true.into()));
    let long = format!("select '{}'", "x".repeat(300 << 10));
    assert_eq!(served.sql(&long).status, 413);
}

#[test]
fn oversized_requests_are_cut_off() {
    let served = serve(&[KERAS]);
    let long_path = format!("/api/runs/0/timeline/search?q={}", "x".repeat(1 << 20));
    let request = format!("GET {long_path} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", served.bearer());
    if let Ok(answer) = served.try_ask(request.as_bytes()) {
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    let header = format!("X-Long: {}\r\n", "x".repeat(1 << 20));
    let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{header}\r\n");
    if let Ok(answer) = served.try_ask(request.as_bytes()) {
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    let many = (0..5000).map(|it| format!("{it},")).collect::<String>();
    let path = format!("/api/runs/0/timeline/tiles?level=30&tile=0&tracks={many}");
    assert_eq!(served.get(&path).status, 413);
    for garbage in [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"GET\r\n\r\n", b"\0\0\0\0\r\n\r\n"] {
        if let Ok(answer) = served.try_ask(garbage) {
            assert!((400..500).contains(&answer.status), "{answer:?}");
        }
    }
    assert_eq!(served.get("/api/runs").status, 200, "still there for others");
}

#[test]
fn two_hundred_clients_are_served_at_once() {
    let served = serve(&[KERAS, TWO_HOSTS]);
    let paths = [
        "/api/runs/0/report",
        "/api/runs/1/report",
        "/api/runs/1/tables/op_time",
        "/api/runs/1/timeline/tiles?level=40&tile=0&tracks=3,5",
        "/",
    ];
    let alone: Vec<Answer> = paths.iter().map(|it| served.get(it)).collect();
    thread::scope(|scope| {
        for client in 0..200 {
            let (served, alone) = (&served, &alone);
            scope.spawn(move || {
                let at = client % paths.len();
                let answer = served.get(paths[at]);
                assert_eq!(answer.status, 200);
                assert_eq!(answer.body, alone[at].body, "{}", paths[at]);
            });
        }
    });
}

#[test]
fn clients_that_leave_or_stall_hold_nobody_up() {
    let served = serve(&[TWO_HOSTS]);
    let mut stalled = Vec::new();
    for client in 0..100 {
        let mut stream = TcpStream::connect(served.address).unwrap();
        let request = format!(
            "GET /api/runs/0/timeline/range?from=0&to=999999999999999 HTTP/1.1\r\n\
             Host: localhost\r\n{}\r\n",
            served.bearer()
        );
        match client % 4 {
            // Leaves in the middle of its own question, or of the answer.
            0 => stream.write_all(&request.as_bytes()[..20]).unwrap(),
            1 => {
                stream.write_all(request.as_bytes()).unwrap();
                let _ = stream.read(&mut [0; 16]).unwrap();
            }
            // Stays and says nothing, or promises a body that never comes.
            2 => stalled.push(stream),
            _ => {
                let promise = format!(
                    "POST /api/runs/0/sql HTTP/1.1\r\nHost: localhost\r\n{}\
                     Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{{",
                    served.bearer()
                );
                stream.write_all(promise.as_bytes()).unwrap();
                stalled.push(stream);
            }
        }
    }
    // Who waited for the stalled ones, which never end, would run into the time limit of reading.
    assert_eq!(served.get("/api/runs/0/report").status, 200);
    assert_eq!(served.sql("select 1").status, 200);
    drop(stalled);
}

#[test]
fn a_stopped_server_does_not_wait_for_a_stalled_client() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let runs = Runs::find(&[root.join(KERAS)]).unwrap();
        let listener = Server::listen(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let server = Server::new(listener, runs).unwrap();
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(b"POST /api/runs/0/sql HTTP/1.1\r\nHost: localhost\r\n").unwrap();
        server.serve(async { tokio::time::sleep(Duration::from_millis(50)).await }).await.unwrap();
        drop(stream);
    });
}

#[test]
fn compressed_where_the_client_accepts_it() {
    let served = serve(&[TWO_HOSTS]);
    let plain = served.get("/api/runs/0/tables/op_time");
    let zipped = served.get_with("/api/runs/0/tables/op_time", "Accept-Encoding: gzip\r\n");
    assert!(!plain.head.contains("content-encoding"), "{}", plain.head);
    assert!(zipped.head.contains("content-encoding: gzip"), "{}", zipped.head);
    let small = served.get_with("/api/runs/0/status", "Accept-Encoding: gzip\r\n");
    assert!(!small.head.contains("content-encoding"), "{}", small.head);
}

#[test]
fn a_run_that_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.xplane.pb");
    std::fs::write(&file, b"this is no profile").unwrap();
    let served = serve_with("127.0.0.1:0", &[file], Limits::default());
    let status = served.wait_for(0, "failed");
    assert!(status.body.contains("\"failed\""), "{status:?}");
    let report = served.get("/api/runs/0/report");
    assert_eq!(report.status, 422, "{report:?}");
    assert!(report.body.contains("error"), "{report:?}");
}

#[test]
fn evidence_says_what_to_light() {
    let served = serve(&["testdata/captured/keras_fit"]);
    let list: serde_json::Value =
        serde_json::from_str(&served.get("/api/runs/0/evidence").body).unwrap();
    let list = list.as_array().unwrap();
    assert!(!list.is_empty());
    for it in list {
        let id = it["id"].as_str().unwrap();
        let one = served.get(&format!("/api/runs/0/evidence/{id}"));
        let one: serde_json::Value = serde_json::from_str(&one.body).unwrap();
        let (events, spans) = (one["events"].as_array().unwrap(), one["spans"].as_array().unwrap());
        assert!(!events.is_empty() || !spans.is_empty(), "{id}");
        assert_eq!(events.len() as u64, it["n_events"].as_u64().unwrap());
        assert!(one["from"].as_i64() < one["to"].as_i64());
    }
    for wrong in ["9.9", "x", "0", "..%2F0"] {
        let answer = served.get(&format!("/api/runs/0/evidence/{wrong}"));
        assert_eq!(answer.status, 404, "{wrong}: {}", answer.body);
        assert!(answer.body.contains("on the timeline") || answer.body.contains("no such"));
    }
}

#[test]
fn a_mean_step_is_of_the_steps_that_were_asked_for() {
    let served = serve(&[TWO_HOSTS]);
    served.wait_for(0, "ready");
    let mean = |query: &str| served.get(&format!("/api/runs/0/mean_step{query}")).json();
    let all = mean("");
    assert_eq!(all["breakdown"].as_array().unwrap().len(), 10, "{all}");
    let rows = served.get("/api/runs/0/tables/step_time").json()["rows"].clone();
    let host = rows[0][0].as_str().unwrap().to_owned();
    let of_host = mean(&format!("?host={host}"));
    assert!(of_host["n_steps"].as_u64() < all["n_steps"].as_u64(), "{of_host} {all}");
    assert_eq!(mean("?host=nobody")["mean_ms"], serde_json::Value::Null);
    assert_eq!(mean("?first=1000000")["n_steps"], 0);
    assert_eq!(served.get("/api/runs/0/mean_step?first=x").status, 400);
}

#[test]
fn runs_are_compared_with_runs_that_there_are() {
    let served = serve(&[KERAS, TWO_HOSTS]);
    served.wait_for(0, "ready");
    served.wait_for(1, "ready");
    let there = served.get("/api/runs/0/compare?with=1").json();
    let back = served.get("/api/runs/1/compare?with=0").json();
    assert_eq!(there["step"][0]["measure"], "median");
    assert_eq!(there["step"][0]["a_ms"], back["step"][0]["b_ms"]);
    assert_eq!(there["findings"]["new"], back["findings"]["fixed"]);
    assert_eq!(served.get("/api/runs/0/compare?with=9").status, 404);
    assert_eq!(served.get("/api/runs/0/compare").status, 400);
}
