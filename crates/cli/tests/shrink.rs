//! A profile that shrinks, grows and is taken away while it is read: the job may still write it.
//! None of 20 reports and 5 servers dies of it.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what cannot be run is a failed test")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Reading takes long enough to be disturbed.
const PROFILE_BYTES: usize = 32 << 20;

/// A profile that somebody writes and cuts for as long as this lives.
struct Unsteady {
    folder: tempfile::TempDir,
    is_over: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

impl Unsteady {
    fn start() -> Unsteady {
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
        let profile = testdata.join("captured/retrace_loop/plugins/profile/run/host.xplane.pb");
        // Two messages behind one another are one with the fields of both.
        let profile = fs::read(profile).unwrap();
        let whole = profile.repeat(PROFILE_BYTES.div_ceil(profile.len()));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.xplane.pb");
        fs::write(&path, &whole).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let writer = std::thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                for round in 1_u64.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let file = File::options().write(true).open(&path).unwrap();
                    for part in 0..8 {
                        let share = (round * 7 + part * 5) % 16;
                        file.set_len(whole.len() as u64 * share / 16).unwrap();
                        std::thread::yield_now();
                    }
                    fs::write(&path, &whole).unwrap();
                }
            }
        });
        Unsteady { folder, is_over, writer: Some(writer) }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("host.xplane.pb")
    }
}

impl Drop for Unsteady {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.writer.take().map(JoinHandle::join);
    }
}

fn strobe(command: &str) -> Command {
    let mut strobe = Command::new(env!("CARGO_BIN_EXE_strobe"));
    strobe.arg(command).stdin(Stdio::null());
    strobe
}

#[test]
fn no_report_dies() {
    let profile = Unsteady::start();
    let mut told = 0;
    for run in 0..20 {
        let done = strobe("report").arg(profile.path()).args(["--format", "json"]).output();
        let done = done.unwrap();
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!error.contains("panicked"), "run {run}: {error}");
        match done.status.code() {
            Some(0 | 3) => told += 1,
            // Nothing was left to read.
            Some(2) => assert!(error.contains("file: "), "run {run}: {error}"),
            _ => panic!("run {run} ended by {}: {error}", done.status),
        }
    }
    assert!(told > 0, "none had anything to tell");
}

#[test]
fn no_server_dies() {
    for run in 0..5 {
        let profile = Unsteady::start();
        let mut serve = strobe("serve");
        serve.arg(profile.path()).args(["--port", "0", "--no-open"]);
        let Some(mut served) = Served::start(&mut serve) else {
            println!("skipped: this strobe was built without its page");
            return;
        };
        let status = loop {
            let status = served.get("/api/runs/0/status");
            if !status.contains("\"opening\"") {
                break status;
            }
            std::thread::yield_now();
        };
        assert!(status.contains("\"ready\"") || status.contains("\"failed\""), "{status}");
        for path in ["report", "tables/program_memory", "events/0", "events/999", "timeline"] {
            served.get(&format!("/api/runs/0/{path}"));
        }
        served.get("/api/runs");
        let ended = served.process.try_wait().unwrap();
        assert!(ended.is_none(), "server {run} ended by {ended:?}");
    }
}

/// A server, until this is dropped.
struct Served {
    process: Child,
    host: String,
    token: String,
}

impl Served {
    /// `None` where it does not start.
    fn start(command: &mut Command) -> Option<Served> {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let Some((_, address)) = address.trim().split_once("://") else {
            process.wait().unwrap();
            return None;
        };
        let host = address.split(['/', '?', '#']).next().unwrap_or_default().to_owned();
        let token = address.split_once("token=").map(|it| it.1.to_owned()).unwrap_or_default();
        Some(Served { process, host, token })
    }

    /// All of an answer; there always is one.
    fn get(&self, path: &str) -> String {
        let (host, token) = (&self.host, &self.token);
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with("HTTP/1.1 "), "{path}: {answer:?}");
        answer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
