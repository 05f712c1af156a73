//! Starts a command several times through `strobe run`, in turns with another one.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;
use tempfile::TempDir;

use crate::output::note;

/// The run folders of both commands, in the order they ran.
#[derive(Debug)]
pub struct Started {
    pub folders: Vec<PathBuf>,
    pub other_folders: Vec<PathBuf>,
    /// What they are in.
    pub root: PathBuf,
    /// Removed when this is dropped.
    _temporary: Option<TempDir>,
}

pub fn run_all(
    command: &[String],
    against: Option<&str>,
    runs: u32,
    out: Option<&Path>,
) -> anyhow::Result<Started> {
    if crate::Cli::command().find_subcommand("run").is_none() {
        bail!(
            "this build of strobe cannot start commands: it has no `strobe run`\n  hint: measure \
             folders of runs that are there, as `strobe bench RUN…`"
        );
    }
    let temporary = match out {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("no temporary folder for the runs")?),
    };
    let root = match (out, &temporary) {
        (Some(out), _) => out.to_owned(),
        (None, Some(temporary)) => temporary.path().to_owned(),
        (None, None) => PathBuf::new(),
    };
    // As `hyperfine` takes its commands: a line for the shell.
    let other: Vec<String> =
        against.map(|line| ["sh", "-c", line].map(str::to_owned).to_vec()).unwrap_or_default();
    let mut started = Started {
        folders: Vec::new(),
        other_folders: Vec::new(),
        root: root.clone(),
        _temporary: temporary,
    };
    for round in 0..runs {
        // A B, B A, A B, …: a machine that slows down evenly slows both alike.
        let mut turns = [("run", command), ("other", other.as_slice())];
        if round % 2 == 1 {
            turns.reverse();
        }
        for (name, command) in turns.into_iter().filter(|it| !it.1.is_empty()) {
            note(format!("run {} of {runs}: {}", round + 1, command.join(" ")));
            // Zeros in front, so that names sort in the order they ran.
            let folder = run_once(command, &root.join(format!("{name}-{:04}", round + 1)))?;
            match name {
                "run" => started.folders.push(folder),
                _ => started.other_folders.push(folder),
            }
        }
    }
    Ok(started)
}

/// Runs a command once as `strobe run` does, without a profile, into a new folder.
fn run_once(command: &[String], folder: &Path) -> anyhow::Result<PathBuf> {
    if folder.exists() {
        bail!(
            "the run folder already exists\n  hint: name another with --out\n  path: {}",
            folder.display()
        );
    }
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the run folder\n  path: {}", folder.display()))?;
    let program = std::env::current_exe().context("cannot tell where strobe itself is")?;
    let status = Command::new(program)
        .args(["run", "--no-capture", "--quiet", "--out"])
        .arg(folder)
        .arg("--")
        .args(command)
        // Results alone go to stdout.
        .stdout(Stdio::from(io::stderr()))
        .status()
        .context("cannot start strobe itself")?;
    match status.code() {
        Some(0) => Ok(folder.to_owned()),
        Some(code) => bail!("the command ended with code {code}\n  command: {}", command.join(" ")),
        None => bail!("the command was ended by a signal\n  command: {}", command.join(" ")),
    }
}
