//! `strobe run`: starts a training command as it is, captures a few steady steps, reports.

mod conclude;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use capture::{
    Ended, FolderError, GitState, LaunchError, Manifest, ProcessLog, RunFolder, Settings,
};
use serde_json::Value;

use self::conclude::Conclusion;
use crate::output::{Format, Output, note};

/// Start a training command with no code change, capture a few steady steps, report
///
/// The command's output, exit code and signals stay its own; the report goes to stderr.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many steady steps to capture [default: at least 10, and 2 seconds]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    steps: Option<u32>,
    /// How many steps to let pass first: a number, or `auto` to wait until they are steady
    #[arg(long, default_value = "auto", value_parser = warmup)]
    warmup: Warmup,
    /// Where to write the run; an empty or new folder [default: below ~/.local/state/stroboscope]
    #[arg(long)]
    out: Option<PathBuf>,
    /// The longest a capture may take
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS", value_parser = seconds)]
    max_seconds: f64,
    /// The most memory a capture may take, in megabytes
    #[arg(long, default_value_t = 2048, value_name = "MB")]
    max_memory: u64,
    /// Only time the steps: no profile
    #[arg(long)]
    no_capture: bool,
    /// Do not sample the lines of Python
    #[arg(long)]
    no_python: bool,
    /// End the command once its steps are captured
    #[arg(long)]
    stop_after: bool,
    /// Only write the run folder: no report
    #[arg(long, short, conflicts_with = "report")]
    quiet: bool,
    /// Write the report to this file instead of stderr
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// How to print the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The command and its arguments, as you type them without strobe
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy)]
struct Warmup(Option<u32>);

fn warmup(text: &str) -> Result<Warmup, String> {
    match text {
        "auto" => Ok(Warmup(None)),
        _ => text.parse().map(|it| Warmup(Some(it))).map_err(|_| "a number, or auto".to_owned()),
    }
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(it) if (0.1..=3600.0).contains(&it) => Ok(it),
        _ => Err("a number of seconds from 0.1 to 3600".to_owned()),
    }
}

/// What a shell says where a command is missing.
const NO_SUCH_COMMAND: u8 = 127;
const CANNOT_START: u8 = 126;

pub fn run(args: &Args, _: &mut Output) -> anyhow::Result<ExitCode> {
    let command: Vec<String> =
        args.command.iter().map(|it| it.to_string_lossy().into_owned()).collect();
    // First: a mistyped command leaves nothing behind.
    if let Err(error) = capture::find_command(&args.command) {
        return Ok(not_started(&error));
    }
    #[cfg(unix)]
    capture::outlive_file_limits();
    let folder = match capture::new_run_folder(args.out.as_deref(), &name_of(&command)) {
        Ok(folder) => Some(folder),
        // A disk that is full or read-only is no reason not to train.
        Err(error @ FolderError::Io { .. }) => {
            note(format!("warning: this run is not recorded: {error}"));
            None
        }
        Err(error) => return Err(error.into()),
    };
    let settings = Settings {
        capture: !args.no_capture,
        steps: args.steps,
        warmup: args.warmup.0,
        max_seconds: args.max_seconds,
        max_bytes: args.max_memory << 20,
        stacks: !args.no_python,
        stop_after: args.stop_after,
    };
    let mut manifest = Manifest::begin("run");
    manifest.command(&command);
    manifest.set("settings", settings.as_json());
    let mut unwritten = Vec::new();
    if let Some(folder) = &folder {
        unwritten.extend(capture::write_manifest(&folder.path, &manifest).err());
    }

    let began = SystemTime::now();
    let mut git = None;
    let mut started = || git = std::env::current_dir().ok().map(|it| GitState::ask(&it));
    let launched = capture::launch(&args.command, folder.as_ref(), &settings, &mut started);
    let (ended, more) = match launched {
        Ok(it) => (it.ended, it.unwritten),
        Err(error) => {
            folder.into_iter().for_each(RunFolder::discard);
            return Ok(not_started(&error));
        }
    };
    unwritten.extend(more);
    let mut processes = Vec::new();
    // Whatever the report says or cannot say, the command's own end is the answer.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let Some(folder) = folder.map(|it| it.path) else { return };
        processes = capture::process_logs(&folder);
        let own = conclude::take_own_profile(&folder, &processes, began);
        manifest.set("git", git.map_or(Value::Null, |it| it.answer()));
        manifest.end(Some(ended), &processes);
        unwritten.extend(capture::write_manifest(&folder, &manifest).err());
        let environment = std::env::vars_os()
            .map(|it| [it.0, it.1].map(|it| it.to_string_lossy().into_owned()).into());
        capture::seal(&folder, &redact::Mask::new(&command, environment));
        let conclusion =
            Conclusion { args, folder: &folder, processes: &processes, ended, own, unwritten };
        if !args.quiet
            && let Err(error) = conclusion.print()
        {
            note(format!("error: {error}"));
        }
    }));
    Ok(exit(ended, &processes))
}

fn not_started(error: &LaunchError) -> ExitCode {
    note(format!("error: {error}"));
    ExitCode::from(match error {
        LaunchError::NoSuchCommand { .. } => NO_SUCH_COMMAND,
        LaunchError::CannotStart { .. } => CANNOT_START,
    })
}

/// `python -m pkg.train --lr 1` is called `train`.
fn name_of(command: &[String]) -> String {
    let is_python = |it: &&String| it.ends_with(".py");
    let module = || {
        let at = command.iter().position(|it| it == "-m")?;
        command.get(at + 1)
    };
    let name = command.iter().find(is_python).or_else(module).or(command.first());
    let name = name.map(|it| it.rsplit('/').next().unwrap_or(it)).unwrap_or("run");
    name.trim_end_matches(".py").rsplit('.').next().unwrap_or(name).to_owned()
}

fn exit(ended: Ended, processes: &[ProcessLog]) -> ExitCode {
    let asked = processes.iter().any(|it| it.last("done").is_some());
    match ended {
        Ended::Code(code) => ExitCode::from(code as u8),
        Ended::Signal(_) if asked => ExitCode::SUCCESS,
        // Ends as the command did, so that who called sees the same.
        Ended::Signal(signal) => {
            capture::end_by_signal(signal);
            ExitCode::from(128_u8.wrapping_add(signal as u8))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn runs_are_named_after_what_they_run() {
        let check = |command: &str, expected: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(name_of(&words), expected);
        };
        check("python examples/train.py --lr 1", "train");
        check("python -m pkg.train --lr 1", "train");
        check("/usr/bin/torchrun --nproc 2 main.py", "main");
        check("./train", "train");
    }
}
