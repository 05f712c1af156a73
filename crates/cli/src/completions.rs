//! `strobe completions`: what a shell needs to complete strobe's commands and options.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::output::Output;

/// Print what a shell needs to complete commands and options
///
/// For bash: strobe completions bash > ~/.local/share/bash-completion/completions/strobe
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    clap_complete::generate(args.shell, &mut crate::command_line(), "strobe", out);
    Ok(ExitCode::SUCCESS)
}
