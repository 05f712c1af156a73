//! `strobe licenses`: whose work strobe is made of.

use std::io::Write as _;
use std::process::ExitCode;

use crate::output::Output;

/// The crates that are compiled in. `UPDATE=1 cargo test -p strobe --test licences` writes it.
const CRATES: &str = include_str!("../notices.txt");

/// Print the licences of strobe and of everything that is compiled into it
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    writeln!(
        out,
        "strobe {} is licensed under {}.\n\n{CRATES}\n{}",
        env!("CARGO_PKG_VERSION"),
        env!("CARGO_PKG_LICENSE"),
        server::PAGE_NOTICES,
    )?;
    Ok(ExitCode::SUCCESS)
}
