//! The binary `strobe`: one file per subcommand, each arguments and one function.

mod attach;
mod bench;
mod completions;
mod demo;
mod doctor;
mod explain;
mod export;
mod huge_pages;
mod licenses;
mod man;
mod output;
mod progress;
mod report;
mod run;
mod serve;
mod sql;
mod table;
mod top;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};
use session::Session;

use crate::huge_pages::{HugePages, give_back_blocks};
use crate::output::{Output, note};

#[global_allocator]
static MEMORY: HugePages = HugePages;

/// Tells why a model trains slowly, what to change, and how much faster it will be.
#[derive(Debug, Parser)]
#[command(name = "strobe", version, about, max_term_width = 100)]
#[command(
    override_usage = "strobe <COMMAND>\n       strobe <PATH>    the same as strobe report <PATH>"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Makes the subcommands of a list: each is a module with `Args` and `run`.
macro_rules! commands {
    ($($module:ident :: $command:ident),* $(,)?) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($command($module::Args),)*
        }

        fn execute(command: &Command, out: &mut Output) -> anyhow::Result<ExitCode> {
            match command {
                $(Command::$command(args) => $module::run(args, out),)*
            }
        }
    };
}

commands![
    demo::Demo,
    run::Run,
    attach::Attach,
    top::Top,
    report::Report,
    serve::Serve,
    table::Table,
    sql::Sql,
    bench::Bench,
    export::Export,
    explain::Explain,
    doctor::Doctor,
    completions::Completions,
    man::Man,
    licenses::Licenses,
];

/// The whole command line, for what is made from it.
fn command_line() -> clap::Command {
    Cli::command()
}

/// A gate failed, or `--strict` found something.
const FOUND: u8 = 1;
/// Could not: bad input or bad usage.
const COULD_NOT: u8 = 2;
/// Not enough data to judge.
const NOT_ENOUGH: u8 = 3;

fn main() -> ExitCode {
    session::BEFORE_MANY_BLOCKS.get_or_init(|| give_back_blocks);
    let cli = match parse(std::env::args_os().collect()) {
        Ok(it) => it,
        Err(error) => return refuse(&error),
    };
    let mut out = Output::of_stdout();
    let done = execute(&cli.command, &mut out).and_then(|code| Ok(out.flush().map(|()| code)?));
    match done {
        Ok(code) => code,
        // A reader that has seen enough, as `head`, is no failure.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            note(format!("error: {error}"));
            ExitCode::from(COULD_NOT)
        }
    }
}

/// A path alone means its report.
fn parse(args: Vec<OsString>) -> Result<Cli, clap::Error> {
    let error = match Cli::try_parse_from(&args) {
        Ok(cli) => return Ok(cli),
        Err(error) => error,
    };
    let is_path = args.get(1).is_some_and(|it| Path::new(it).exists());
    if error.kind() == ErrorKind::InvalidSubcommand && is_path {
        let report = [args[0].clone(), "report".into()].into_iter();
        return Cli::try_parse_from(report.chain(args.into_iter().skip(1)));
    }
    Err(error)
}

/// Says what is wrong with the arguments, of which a path can hold anything.
fn refuse(error: &clap::Error) -> ExitCode {
    let is_clean = std::env::args_os().all(|it| output::is_clean(&it.to_string_lossy()));
    if is_clean || !error.use_stderr() {
        error.exit();
    }
    note(error.render().to_string().trim_end());
    ExitCode::from(COULD_NOT)
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|it| it.kind() == io::ErrorKind::BrokenPipe)
}

/// Opens a path, showing progress where it takes long, and says which of several runs it took.
fn open(path: &Path) -> anyhow::Result<Session> {
    let progress = progress::Progress::start();
    let session = Session::open_with(path, &|it| progress.say(it))?;
    drop(progress);
    if let Some(other) = session.run.others.first() {
        let n = session.run.others.len() + 1;
        note(format!(
            "note: {n} runs here, {} is the newest; name another as {}",
            session.run.name,
            other.display()
        ));
    }
    Ok(session)
}
