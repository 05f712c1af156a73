//! A real server, and a client that says exactly what it is told to.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use server::{Limits, QueryTurns, Runs, Server};

/// A server of its own for every test; it ends with the process.
pub struct Served {
    pub address: SocketAddr,
    pub token: String,
    pub turns: Arc<QueryTurns>,
}

pub fn serve(paths: &[&str]) -> Served {
    serve_on("127.0.0.1:0", paths)
}

pub fn serve_on(bind: &str, paths: &[&str]) -> Served {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let paths: Vec<PathBuf> = paths.iter().map(|it| root.join(it)).collect();
    let served = serve_with(bind, &paths, Limits::default());
    for run in 0..paths.len() {
        served.wait_for(run, "ready");
    }
    served
}

pub fn serve_with(bind: &str, paths: &[PathBuf], limits: Limits) -> Served {
    let runs = Runs::find(paths).unwrap();
    let bind: SocketAddr = bind.parse().unwrap();
    let (told, heard) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = Server::listen(bind).await.unwrap();
            let server = Server::with_limits(listener, runs, limits).unwrap();
            let url = server.url();
            let (address, token) = url.split_once("/?token=").unwrap();
            let address = address.strip_prefix("http://").unwrap().parse().unwrap();
            let turns = server.query_turns();
            told.send(Served { address, token: token.to_owned(), turns }).unwrap();
            server.serve(std::future::pending()).await.unwrap();
        });
    });
    heard.recv().unwrap()
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Served {
    /// The header that shows the token.
    pub fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    pub fn get_with(&self, path: &str, headers: &str) -> Answer {
        self.get_without_token(path, &format!("{}{headers}", self.bearer()))
    }

    pub fn get_without_token(&self, path: &str, headers: &str) -> Answer {
        let host = self.address;
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n"
        ))
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.ask(&self.post_request(path, body))
    }

    pub fn post_request(&self, path: &str, body: &str) -> String {
        let (host, bearer, n) = (self.address, self.bearer(), body.len());
        format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\n{bearer}Content-Type: application/json\r\n\
             Content-Length: {n}\r\nConnection: close\r\n\r\n{body}"
        )
    }

    pub fn sql(&self, query: &str) -> Answer {
        self.post("/api/runs/0/sql", &serde_json::json!({"query": query}).to_string())
    }

    pub fn ask(&self, request: &str) -> Answer {
        self.try_ask(request.as_bytes()).unwrap()
    }

    /// A server that answers before it has read everything may close on us while we write.
    pub fn try_ask(&self, request: &[u8]) -> io::Result<Answer> {
        let mut stream = self.connect();
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

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        // What hangs fails.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Asks for a run until it is in this state.
    pub fn wait_for(&self, run: usize, state: &str) -> Answer {
        loop {
            let answer = self.get(&format!("/api/runs/{run}/status"));
            let now = answer.json()["state"].as_str().unwrap().to_owned();
            if now == state {
                return answer;
            }
            assert_eq!(now, "opening", "{answer:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
