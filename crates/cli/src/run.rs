//! `strobe run`: starts a training command as it is, captures a few steady steps, reports.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analyses::run_step::{Overhead, RunStep};
use capture::{Ended, LaunchError, Manifest, ProcessLog, Settings};
use session::Session;
use trace::Dur;

use crate::output::{Format, Output, note, wrap};
use crate::report;

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
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "CMD")]
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
    let folder = capture::new_run_folder(args.out.as_deref(), &name_of(&command))?;
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
    capture::write_manifest(&folder, &manifest)?;

    let ended = match capture::launch(&args.command, &folder, &settings) {
        Ok(ended) => ended,
        Err(error) => {
            let _ = std::fs::remove_dir_all(&folder);
            note(format!("error: {error}"));
            return Ok(ExitCode::from(match error {
                LaunchError::NoSuchCommand { .. } => NO_SUCH_COMMAND,
                _ => CANNOT_START,
            }));
        }
    };
    let processes = capture::process_logs(&folder);
    manifest.end(Some(ended), &processes);
    capture::write_manifest(&folder, &manifest)?;
    // Whatever the report says or cannot say, the command's own end is the answer.
    if !args.quiet
        && let Err(error) = conclude(args, &folder, &processes)
    {
        note(format!("error: {error}"));
    }
    Ok(exit(ended, &processes))
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

fn conclude(args: &Args, folder: &Path, processes: &[ProcessLog]) -> anyhow::Result<()> {
    let mut out = Output::of_stderr();
    if let Some(why) = nothing_captured(args, folder, processes) {
        writeln!(out, "strobe: {why}\n  run: {}", folder.display())?;
        return Ok(out.flush()?);
    }
    let session = Session::open(folder)?;
    let summary = session.report();
    match &args.report {
        Some(path) => {
            let mut to = Output::of_file(File::create(path)?);
            report::print(&summary, args.format, false, &mut to)?;
            to.flush()?;
        }
        None => report::print(&summary, args.format, false, &mut out)?,
    }
    if args.format == Format::Text || args.report.is_some() {
        writeln!(out)?;
        if let Some(line) = what_it_cost(&session, processes) {
            write!(out, "{}", wrap(&line, out.width, " "))?;
        }
        writeln!(out, " Kept: strobe report {}", folder.display())?;
    }
    Ok(out.flush()?)
}

/// What profiling did to the steps it saw, against those around them.
fn what_it_cost(session: &Session, processes: &[ProcessLog]) -> Option<String> {
    let timed: i64 = processes.iter().map(|it| it.n_steps).sum();
    let mut line = format!("Profiled: {} of {timed} steps", profiled_steps(session));
    match Overhead::of(session.tables()) {
        Some(it) => {
            let more = (it.on_ps - it.off_ps) as f64 / it.off_ps.max(1) as f64 * 100.0;
            line += &format!(
                "; {} with the profiler on, {} without ({more:+.1} %)",
                Dur(it.on_ps),
                Dur(it.off_ps)
            );
        }
        None => {
            line += "; the steps around them are too few, or of too different a pace, to say what \
                     profiling cost";
        }
    }
    (timed > 0).then_some(line)
}

fn profiled_steps(session: &Session) -> i64 {
    let rows = session.tables().get::<RunStep>();
    rows.iter().filter(|it| it.profiled != "no").map(|it| it.steps).sum()
}

/// Why there is no profile to report on.
fn nothing_captured(args: &Args, folder: &Path, processes: &[ProcessLog]) -> Option<String> {
    if args.no_capture {
        let steps: i64 = processes.iter().map(|it| it.n_steps).sum();
        return Some(format!("{steps} steps timed, none profiled, as asked"));
    }
    if ["profile", "torch"].iter().any(|it| folder.join(it).exists()) {
        return None;
    }
    if processes.is_empty() {
        return Some(
            "nothing was captured: no process of this command imported TensorFlow, JAX or PyTorch\n  \
             hint: `python -I` and `python -E` ignore what is put in front of them"
                .to_owned(),
        );
    }
    let said = |what: &str| processes.iter().find_map(|it| it.last(what));
    let own = said("own-profiler").map(|it| {
        let hint = match it.text.contains(" into ") {
            true => "strobe report on that folder",
            false => "without it, strobe captures the steps itself",
        };
        let text = &it.text;
        format!(
            "nothing was captured: the program uses the profiler itself ({text})\n  hint: {hint}"
        )
    });
    let reason = ["failed", "none", "busy", "not-watched"].iter().find_map(|it| said(it));
    Some(own.unwrap_or_else(|| match reason {
        Some(it) => format!("nothing was captured: {}", it.text),
        None if said("window-start").is_some() => {
            "the process ended while it was being captured, and its profile went with it".to_owned()
        }
        None => "nothing was captured: the process ended before its steps were steady".to_owned(),
    }))
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
