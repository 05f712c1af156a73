//! Tells on stderr what takes long: nothing for a second, then a line.

use std::io::{self, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use session::Progress as Step;

use crate::output::Output;

pub struct Progress {
    words: Option<Sender<String>>,
    teller: Option<JoinHandle<()>>,
}

impl Progress {
    pub fn start() -> Progress {
        let (words, heard) = mpsc::channel::<String>();
        let teller = std::thread::spawn(move || {
            let begun = Instant::now();
            let mut out = Output::of_stderr();
            let live = out.is_terminal;
            let mut now = String::new();
            let mut shown = false;
            loop {
                match heard.recv_timeout(Duration::from_millis(200)) {
                    Ok(it) => now = it,
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => (),
                }
                let waited = begun.elapsed();
                if waited < Duration::from_secs(1) || now.is_empty() || (shown && !live) {
                    continue;
                }
                shown = true;
                let _ = show(&mut out, &format!("{now} · {} s", waited.as_secs()));
            }
            if shown && live {
                let _ = out.erase_line().and_then(|()| out.flush());
            }
        });
        Progress { words: Some(words), teller: Some(teller) }
    }

    pub fn say(&self, step: Step<'_>) {
        let text = match step {
            Step::Reading { file, bytes } => {
                let name = file.file_name().map(|it| it.to_string_lossy().into_owned());
                let megabytes = bytes.size() / 1_000_000;
                format!("reading {}, {} MB", name.unwrap_or_default(), megabytes)
            }
            Step::Found { .. } => return,
            Step::Sorting => "sorting events".to_owned(),
        };
        if let Some(words) = &self.words {
            // The teller may be gone; then nobody needs to be told.
            let _ = words.send(text);
        }
    }
}

fn show(out: &mut Output, line: &str) -> io::Result<()> {
    match out.is_terminal {
        true => {
            out.erase_line()?;
            write!(out, "{line}")?;
        }
        false => writeln!(out, "{line}")?,
    }
    out.flush()
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.words = None;
        if let Some(teller) = self.teller.take() {
            let _ = teller.join();
        }
    }
}
