//! Where the time of the captured steps goes: the profile is read beside the screen, once it is
//! saved.

use std::sync::mpsc::{Receiver, TryRecvError, channel};

use capture::live::Snapshot;
use session::Session;
use session::report::Share;
use trace::Dur;

/// What is known of where the time goes.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Breakdown {
    /// There is no profile yet.
    #[default]
    None,
    Reading,
    Read(Parts),
    /// In words.
    Failed(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    /// Largest first, none of them empty.
    pub shares: Vec<Share>,
    pub step: Dur,
    pub n_steps: usize,
}

/// Reads a profile whenever another one was saved.
#[derive(Debug, Default)]
pub struct Reader {
    saved_unix_ns: Option<i64>,
    state: Breakdown,
    coming: Option<Receiver<Breakdown>>,
}

impl Reader {
    pub fn state(&self) -> &Breakdown {
        &self.state
    }

    /// Takes what was read, and starts to read what was saved since.
    pub fn follow(&mut self, snapshot: &Snapshot) {
        if snapshot.saved_unix_ns != self.saved_unix_ns && self.coming.is_none() {
            self.saved_unix_ns = snapshot.saved_unix_ns;
            self.state = Breakdown::None;
            if self.saved_unix_ns.is_some() {
                self.start(snapshot);
            }
        }
        let Some(coming) = &self.coming else { return };
        match coming.try_recv() {
            Ok(state) => self.finish(state),
            Err(TryRecvError::Empty) => (),
            Err(TryRecvError::Disconnected) => self.finish(unreadable()),
        }
    }

    fn start(&mut self, snapshot: &Snapshot) {
        let (to, coming) = channel();
        let folder = snapshot.folder.clone();
        let name = "strobe-profile".to_owned();
        let read = move || {
            let state = match Session::open(&folder) {
                Ok(session) => parts(&session),
                Err(error) => Breakdown::Failed(first_line(&error.to_string())),
            };
            // Nobody listens where the view was closed meanwhile.
            let _ = to.send(state);
        };
        self.state = Breakdown::Reading;
        match std::thread::Builder::new().name(name).spawn(read) {
            Ok(_) => self.coming = Some(coming),
            Err(error) => self.state = Breakdown::Failed(error.to_string()),
        }
    }

    fn finish(&mut self, state: Breakdown) {
        self.state = state;
        self.coming = None;
    }

    /// Waits until what was saved is read.
    pub fn wait(&mut self) {
        if let Some(coming) = self.coming.take() {
            self.state = coming.recv().unwrap_or_else(|_| unreadable());
        }
    }
}

fn unreadable() -> Breakdown {
    Breakdown::Failed("the profile could not be read".to_owned())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn parts(session: &Session) -> Breakdown {
    let report = session.measurements();
    let Some(steps) = &report.steps else {
        return Breakdown::Failed("no steps could be told apart in the profile".to_owned());
    };
    let mut shares: Vec<Share> =
        report.breakdown.iter().filter(|it| it.share > 0.0).copied().collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    Breakdown::Read(Parts { shares, step: steps.mean, n_steps: steps.count })
}
