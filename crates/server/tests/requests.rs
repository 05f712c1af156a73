//! Whoever asks, and however: refused or served, nothing leaks, nothing hangs.

#![expect(clippy::unwrap_used, reason = "what cannot be asked is a failed test")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use server::{Runs, Server};

/// A server of its own for every test; it ends with the process.
struct Served {
    address: SocketAddr,
    token: Option<String>,
}

fn serve(paths: &[&str]) -> Served {
    serve_on("127.0.0.1:0", paths)
}

fn serve_on(bind: &str, paths: &[&str]) -> Served {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let paths: Vec<PathBuf> = paths.iter().map(|it| root.join(it)).collect();
    let runs = Runs::find(&paths).unwrap();
    let bind: SocketAddr = bind.parse().unwrap();
    let (told, heard) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::new(Server::listen(bind).await.unwrap(), runs).unwrap();
            assert!(server.url().starts_with("http://127.0.0.1:"), "{}", server.url());
            let token = server.url().split_once("token=").map(|it| it.1.to_owned());
            told.send((server.address().port(), token)).unwrap();
            server.serve(std::future::pending()).await.unwrap();
        });
    });
    let (port, token) = heard.recv().unwrap();
    let served = Served { address: SocketAddr::from(([127, 0, 0, 1], port)), token };
    let bearer = served.token.as_deref().map(|it| format!("Authorization: Bearer {it}\r\n"));
    for run in 0..paths.len() {
        let status = format!("/api/runs/{run}/status");
        while !served.get_with(&status, bearer.as_deref().unwrap_or("")).body.contains("\"ready\"")
        {
            thread::sleep(Duration::from_millis(10));
        }
    }
    served
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Served {
    fn get(&self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    fn get_with(&self, path: &str, headers: &str) -> Answer {
        let host = self.address;
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n"
        ))
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        let (host, n) = (self.address, body.len());
        self.ask(&format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {n}\r\nConnection: close\r\n\r\n{body}"
        ))
    }

    fn sql(&self, query: &str) -> Answer {
        self.post("/api/runs/0/sql", &serde_json::json!({"query": query}).to_string())
    }

    fn ask(&self, request: &str) -> Answer {
        self.try_ask(request.as_bytes()).unwrap()
    }

    /// A server that answers before it has read everything may close on us while we write.
    fn try_ask(&self, request: &[u8]) -> io::Result<Answer> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let written = stream.write_all(request);
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes) {
            Ok(_) => (),
            Err(_) if !bytes.is_empty() => (),
            Err(error) => return Err(written.err().unwrap_or(error)),
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        Ok(Answer { status, head: head.to_lowercase(), body: body.to_owned() })
    }
}

const KERAS: &str = "testdata/captured/keras_fit";
const TWO_HOSTS: &str = "testdata/synthetic/two_hosts";

#[test]
fn only_our_own_names_are_hosts() {
    let served = serve(&[KERAS]);
    let ask = |host: &str| {
        served.ask(&format!("GET /api/runs HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
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
fn beyond_loopback_a_token_is_needed() {
    let served = serve_on("0.0.0.0:0", &[KERAS]);
    let token = served.token.clone().unwrap();
    assert_eq!(token.len(), 32);
    let refused = served.get("/api/runs");
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("token"), "{refused:?}");
    assert!(!refused.body.contains(&token) && !refused.body.contains("keras"), "{refused:?}");
    for wrong in
        ["", "x", &token[1..], &format!("{token}0"), &token.to_uppercase().replace('0', "O")]
    {
        let header = format!("Authorization: Bearer {wrong}\r\n");
        assert_eq!(served.get_with("/api/runs", &header).status, 403, "{wrong}");
        assert_eq!(served.get(&format!("/api/runs?token={wrong}")).status, 403, "{wrong}");
    }
    let header = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(served.get_with("/api/runs", &header).status, 200);
    assert_eq!(served.get(&format!("/api/runs?token={token}")).status, 200);
    // The page holds nothing of the user's; it asks with the token it was opened with.
    assert_eq!(served.get("/").status, 200);
    assert!(serve(&[KERAS]).token.is_none());
}

#[test]
fn every_answer_keeps_browsers_strict() {
    let served = serve(&[KERAS]);
    for path in ["/", "/api/runs", "/api/nothing", "/nothing", "/api/runs/0/report"] {
        let head = served.get(path).head;
        assert!(head.contains("content-security-policy: default-src 'none'"), "{path}: {head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{path}");
        assert!(head.contains("x-frame-options: deny"), "{path}");
        assert!(head.contains("cross-origin-resource-policy: same-origin"), "{path}");
    }
    assert!(served.get("/api/runs").head.contains("cache-control: no-store"));
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
    let request = format!("GET {long_path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
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
        let request = "GET /api/runs/0/timeline/range?from=0&to=999999999999999 HTTP/1.1\r\n\
                       Host: localhost\r\n\r\n";
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
                let promise = "POST /api/runs/0/sql HTTP/1.1\r\nHost: localhost\r\n\
                               Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{";
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
    let served = {
        let runs = Runs::find(std::slice::from_ref(&file)).unwrap();
        let (told, heard) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = Server::listen(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
                let server = Server::new(listener, runs).unwrap();
                told.send(server.address()).unwrap();
                server.serve(std::future::pending()).await.unwrap();
            });
        });
        Served { address: heard.recv().unwrap(), token: None }
    };
    let status = loop {
        let answer = served.get("/api/runs/0/status");
        if !answer.body.contains("opening") {
            break answer;
        }
        thread::sleep(Duration::from_millis(10));
    };
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
