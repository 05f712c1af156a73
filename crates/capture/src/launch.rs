//! Starts a command with the hook in front, and waits for its end.
//!
//! Its output, its input and its exit code are its own; signals that reach us reach it.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use crate::beside::Beside;
use crate::hook::{Hook, Settings};

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Ended {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Ended::Signal(signal);
        }
        Ended::Code(status.code().unwrap_or(1))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("there is no such command\n  command: {command}")]
    NoSuchCommand { command: String },
    #[error("{source}\n  command: {command}")]
    CannotStart { command: String, source: io::Error },
    #[error("the hook could not be written: {source}\n  folder: {folder}")]
    NoHook { folder: String, source: io::Error },
    #[error("the name of the run folder cannot stand in PYTHONPATH\n  folder: {folder}")]
    NotOnPath { folder: String },
}

/// Runs `command` to its end, recording into the folder `run`.
pub fn launch(command: &[OsString], run: &Path, settings: &Settings) -> Result<Ended, LaunchError> {
    let folder = || run.display().to_string();
    let hook = Hook::write(run, settings)
        .map_err(|source| LaunchError::NoHook { folder: folder(), source })?;
    let environment =
        hook.environment(run).map_err(|_| LaunchError::NotOnPath { folder: folder() })?;
    let Some((program, arguments)) = command.split_first() else {
        return Err(LaunchError::NoSuchCommand { command: String::new() });
    };
    let shown = || program.to_string_lossy().into_owned();
    // Before the command starts: a signal in between must not end us alone.
    let signals = Signals::listen();
    let child = Command::new(program).args(arguments).envs(environment).spawn();
    let mut child: Child = child.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => LaunchError::NoSuchCommand { command: shown() },
        _ => LaunchError::CannotStart { command: shown(), source },
    })?;
    let forwarding = signals.map(|it| it.forward_to(child.id()));
    let beside = Beside::start(run, hook.folder(), child.id());
    let status = child.wait();
    beside.stop();
    if let Some(it) = forwarding {
        it.stop();
    }
    match status {
        Ok(status) => Ok(status.into()),
        Err(source) => Err(LaunchError::CannotStart { command: shown(), source }),
    }
}

/// Ends this process as the command ended. Comes back where a signal cannot.
pub fn end_by_signal(signal: i32) {
    #[cfg(unix)]
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    #[cfg(not(unix))]
    let _ = signal;
}

#[cfg(unix)]
use unix::Signals;

#[cfg(unix)]
mod unix {
    use std::io;
    use std::thread::JoinHandle;

    use rustix::process::{Pid, Signal, kill_process};
    use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    use signal_hook::iterator::exfiltrator::WithOrigin;
    use signal_hook::iterator::{Handle, SignalsInfo};
    use signal_hook::low_level::siginfo::Cause;

    /// Signals that reach us, kept from ending us.
    pub struct Signals(SignalsInfo<WithOrigin>);

    impl Signals {
        pub fn listen() -> Option<Signals> {
            let all = [SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT];
            let signals: io::Result<SignalsInfo<WithOrigin>> = SignalsInfo::new(all);
            signals.ok().map(Signals)
        }

        pub fn forward_to(mut self, child: u32) -> Forwarding {
            let handle = self.0.handle();
            let pid = i32::try_from(child).ok().and_then(Pid::from_raw);
            let thread = std::thread::spawn(move || {
                for info in &mut self.0 {
                    // What the terminal sends, it sends to the command as well.
                    let from_terminal = !matches!(info.cause, Cause::Sent(_));
                    if from_terminal && matches!(info.signal, SIGINT | SIGQUIT | SIGCONT | SIGHUP) {
                        continue;
                    }
                    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(info.signal)) {
                        let _ = kill_process(pid, signal);
                    }
                }
            });
            Forwarding { handle, thread }
        }
    }

    pub struct Forwarding {
        handle: Handle,
        thread: JoinHandle<()>,
    }

    impl Forwarding {
        pub fn stop(self) {
            self.handle.close();
            let _ = self.thread.join();
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> Option<Signals> {
        None
    }

    fn forward_to(self, _child: u32) -> Signals {
        self
    }

    fn stop(self) {}
}
