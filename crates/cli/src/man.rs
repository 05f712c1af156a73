//! `strobe man`: the manual, made from the same texts as `--help`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::output::Output;

/// Print the manual page, or write those of all commands into a folder
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A folder for strobe.1, strobe-report.1 and so on; it must exist
    folder: Option<PathBuf>,
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    match &args.folder {
        None => clap_mangen::Man::new(crate::command_line()).render(out)?,
        Some(folder) => clap_mangen::generate_to(crate::command_line(), folder)
            .with_context(|| format!("cannot write to {}", folder.display()))?,
    }
    Ok(ExitCode::SUCCESS)
}
