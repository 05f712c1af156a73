//! `strobe bench`: what a step takes, how sure that is, and whether something else is faster.

mod launch;
mod print;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::bail;
use clap::ValueEnum;
use session::bench::{Gate, Measured, Which, compare};
use statistics::{FEWEST_STEPS, Question, Warmup};

use crate::output::{Grid, Output};

/// Measure step time, throughput and latency of runs or of a command, with statistics
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Folders that `strobe run` wrote, or folders of such: runs of the same thing
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    paths: Vec<PathBuf>,
    /// How many first steps to leave out, or `auto` to find where steps become steady
    #[arg(long, value_name = "auto|N", default_value = "auto")]
    warmup: WarmupArg,
    /// Maximum number of steady steps to judge in each run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Runs of another thing: say whether the first are faster or slower than these
    #[arg(long, value_name = "PATH", num_args = 1..)]
    compare: Vec<PathBuf>,
    /// Exit with 1 if they are slower by this many percent or more, with 3 if the data cannot show it
    #[arg(
        long,
        value_name = "PERCENT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2",
        value_parser = percent
    )]
    fail_if_slower: Option<f64>,
    /// How many times to start the command [default: 3]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Another command line for the shell, run in turns with the command and compared with it
    #[arg(long, value_name = "LINE", conflicts_with = "compare")]
    against: Option<String>,
    /// Keep the run folders of the command here
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The command to start, behind `--`
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Fewer say next to nothing of how much runs differ.
const RUNS: u32 = 3;

const AFTER_HELP: &str = "\
Examples:
  strobe bench runs/a runs/b runs/c             three runs of the same thing
  strobe bench runs/new* --compare runs/old*    is the new one faster?
  strobe bench --runs 5 --against 'python old.py' -- python new.py
                                                both in turns, which cancels what the machine does";

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Md,
}

#[derive(Debug, Clone, Copy)]
struct WarmupArg(Warmup);

impl FromStr for WarmupArg {
    type Err = String;
    fn from_str(text: &str) -> Result<WarmupArg, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(WarmupArg(Warmup::Auto)),
            (_, Ok(n)) => Ok(WarmupArg(Warmup::Steps(n))),
            _ => Err("neither `auto` nor a number of steps".to_owned()),
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(it) if (0.0..=1000.0).contains(&it) => Ok(it),
        _ => Err("no percentage from 0 to 1000".to_owned()),
    }
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    if args.fail_if_slower.is_some() && args.compare.is_empty() && args.against.is_none() {
        bail!(
            "--fail-if-slower needs something to be slower than\n  hint: name other runs with \
             --compare, or another command with --against"
        );
    }
    // Of clap's own checks this one is lost where another argument excludes the command.
    let only_with_command = [
        ("--runs", args.runs.is_some()),
        ("--against", args.against.is_some()),
        ("--out", args.out.is_some()),
    ];
    if let Some((name, _)) = only_with_command.iter().find(|it| it.1 && args.command.is_empty()) {
        bail!(
            "{name} needs a command to start\n  hint: write it behind --, as `strobe bench {name} … -- python train.py`"
        );
    }
    let which = Which { warmup: args.warmup.0, steps: args.steps };
    // Lives until all runs are read: without --out the folders vanish with it.
    let started = match args.command.as_slice() {
        [] => None,
        command => {
            let runs = args.runs.unwrap_or(RUNS);
            Some(launch::run_all(command, args.against.as_deref(), runs, args.out.as_deref())?)
        }
    };
    let (paths, others) = match &started {
        None => (&args.paths, &args.compare),
        Some(it) if args.against.is_some() => (&it.folders, &it.other_folders),
        Some(it) => (&it.folders, &args.compare),
    };
    let measured = Measured::open(paths, which)?;
    let other = match others.as_slice() {
        [] => None,
        others => Some(Measured::open(others, which)?),
    };
    let margin = Question::default().margin;
    let compared = other.as_ref().and_then(|it| compare(it, &measured, margin));
    let shown = print::Shown {
        name: name(paths, &args.command),
        measured: &measured,
        other_name: name(others, args.against.as_slice()),
        other: other.as_ref(),
        compared: compared.as_ref(),
        margin,
        root: started.as_ref().map(|it| it.root.as_path()),
    };
    match args.format {
        Format::Text => {
            let text = print::text(&shown, out);
            write!(out, "{text}")?;
        }
        Format::Json => out.json(&print::as_json(&shown))?,
        Format::Md => write!(out, "{}", print::markdown(&shown))?,
    }

    let enough = measured.is_enough() && other.as_ref().is_none_or(Measured::is_enough);
    let gate =
        args.fail_if_slower.zip(compared.as_ref()).map(|(it, compared)| compared.gate(it / 100.0));
    let code = match gate {
        _ if !enough => crate::NOT_ENOUGH,
        Some(Gate::Fail) => crate::FOUND,
        // A gate that cannot see must not open.
        Some(Gate::CannotTell) => crate::NOT_ENOUGH,
        Some(Gate::Pass) | None => 0,
    };
    Ok(ExitCode::from(code))
}

/// What a set of runs is called: the command, or its first path and how many more.
fn name(paths: &[PathBuf], command: &[String]) -> String {
    match (command, paths) {
        ([], []) => String::new(),
        ([], [path]) => path.display().to_string(),
        ([], [path, rest @ ..]) => format!("{} and {} more", path.display(), rest.len()),
        (command, _) => command.join(" "),
    }
}

/// Columns of a table by name, so that narrow terminals can leave some out.
#[derive(Debug, Default)]
struct Columns(Vec<(&'static str, bool, Vec<String>)>);

impl Columns {
    fn text(&mut self, name: &'static str, cells: Vec<String>) {
        self.0.push((name, false, cells));
    }

    fn number(&mut self, name: &'static str, cells: Vec<String>) {
        // A column that nobody knows anything of is left out.
        if cells.iter().any(|it| !it.is_empty()) {
            self.0.push((name, true, cells));
        }
    }

    fn grid(self) -> Grid {
        let n_rows = self.0.first().map_or(0, |it| it.2.len());
        let row = |at: usize| self.0.iter().map(|it| it.2[at].clone()).collect();
        Grid {
            rows: (0..n_rows).map(row).collect(),
            columns: self.0.iter().map(|it| it.0.to_owned()).collect(),
            right: self.0.iter().map(|it| it.1).collect(),
        }
    }
}

/// Why too few steps are too few.
fn too_few(measured: &Measured) -> String {
    let (steps, values) = (measured.n_steps(), measured.n_values());
    let what = match steps {
        0 => "No steady steps".to_owned(),
        1 => "1 steady step".to_owned(),
        _ if values < steps => {
            let waited = if values == 1 { "once".to_owned() } else { format!("{values} times") };
            return format!(
                "{steps} steady steps hand their work over, which was waited for {waited}: at \
                 least {FEWEST_STEPS} times are needed to judge."
            );
        }
        _ => format!("{steps} steady steps"),
    };
    format!("{what}: at least {FEWEST_STEPS} are needed to judge.")
}
