//! Starts a command with the hook in front, and waits for its end.
//!
//! Its output, its input and its exit code are its own; signals that reach us reach it. Nothing
//! that goes wrong on our side keeps it from running, or changes how it ends.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use crate::beside::Beside;
use crate::folder::RunFolder;
use crate::hook::{Hook, Settings};
#[cfg(unix)]
use crate::signals::{Signals, wait_for};

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
}

/// A command that ran, and what could not be recorded of it.
#[derive(Debug)]
pub struct Launched {
    pub ended: Ended,
    /// What could not be written, the first of each kind.
    pub unwritten: Vec<io::Error>,
}

/// Whether there is such a program, as far as can be told without starting it.
pub fn find_command(command: &[OsString]) -> Result<(), LaunchError> {
    let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let is_path = program.to_string_lossy().contains(['/', std::path::MAIN_SEPARATOR]);
    let exists = match (is_path, std::env::var_os("PATH")) {
        (true, _) => Path::new(program).exists(),
        // Where else to look is up to the system.
        (false, None) => !program.is_empty(),
        (false, Some(path)) => {
            let has = |it: std::path::PathBuf| it.join(program).exists();
            !program.is_empty() && (cfg!(windows) || std::env::split_paths(&path).any(has))
        }
    };
    let shown = || program.to_string_lossy().into_owned();
    if exists { Ok(()) } else { Err(LaunchError::NoSuchCommand { command: shown() }) }
}

/// Runs `command` to its end, recording into the folder `run` if there is one; `started` is
/// called once it runs.
pub fn launch(
    command: &[OsString],
    run: Option<&RunFolder>,
    settings: &Settings,
    started: &mut dyn FnMut(),
) -> Result<Launched, LaunchError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(LaunchError::NoSuchCommand { command: String::new() });
    };
    let mut unwritten = Vec::new();
    let hook =
        run.and_then(|run| Hook::write(run, settings).map_err(|error| unwritten.push(error)).ok());
    let environment = match (&hook, run) {
        (Some(hook), Some(run)) => hook.environment(&run.path).unwrap_or_else(|error| {
            unwritten.push(io::Error::other(error));
            Vec::new()
        }),
        _ => Vec::new(),
    };
    let shown = || program.to_string_lossy().into_owned();
    // Before the command starts: a signal in between must not end us alone.
    #[cfg(unix)]
    let signals = Signals::listen();
    let child = Command::new(program).args(arguments).envs(environment).spawn();
    let mut child: Child = child.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => LaunchError::NoSuchCommand { command: shown() },
        _ => LaunchError::CannotStart { command: shown(), source },
    })?;
    #[cfg(unix)]
    let forwarding = signals.map(|it| it.forward_to(child.id()));
    let folder = hook.as_ref().map(Hook::folder);
    let beside = run.map(|run| Beside::start(&run.path, folder, child.id()));
    started();
    // Its number must stay its own for as long as signals are passed on.
    #[cfg(unix)]
    let _ = wait_for(child.id());
    #[cfg(unix)]
    if let Some(it) = forwarding {
        it.stop();
    }
    let status = child.wait();
    unwritten.extend(beside.and_then(Beside::stop));
    match status {
        Ok(status) => Ok(Launched { ended: status.into(), unwritten }),
        Err(source) => Err(LaunchError::CannotStart { command: shown(), source }),
    }
}

/// Ends this process as the command ended. Comes back where a signal cannot.
#[cfg(unix)]
pub fn end_by_signal(signal: i32) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // The command has left its memory behind; ours would take its place.
    let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Core) };
    let _ = setrlimit(Resource::Core, limit);
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    // Signals without a name keep our handler until another program takes this one's place.
    let end = format!("kill -{signal} $$");
    let _ = std::os::unix::process::CommandExt::exec(Command::new("/bin/sh").args(["-c", &end]));
}

#[cfg(not(unix))]
pub fn end_by_signal(_: i32) {}
