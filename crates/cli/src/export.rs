//! `strobe export`: a run as a file to send.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use server::export::{self, Options};

use crate::output::Output;

/// Write a run as a file to send: a page that needs no server and no network
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A profile, a run folder or a log folder
    path: PathBuf,
    /// What to write
    #[arg(long, value_enum)]
    to: Kind,
    /// Where to; - for stdout; by default the run's name, in the current folder
    #[arg(long, short)]
    out: Option<PathBuf>,
    /// Which steps the timeline shows, as 3 or 3..6; by default a typical one and its neighbours
    #[arg(long, value_parser = steps)]
    steps: Option<Range<i64>>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// One self-contained page; secrets and paths are left out
    Html,
}

/// `3` or `3..6`, the last left out.
fn steps(text: &str) -> Result<Range<i64>, String> {
    let number = |it: &str| it.trim().parse::<i64>().map_err(|_| format!("{it:?} is no step"));
    let steps = match text.split_once("..") {
        Some((from, to)) => number(from)?..number(to)?,
        None => number(text)?..number(text)?.saturating_add(1),
    };
    if steps.is_empty() { Err("no steps lie between these".to_owned()) } else { Ok(steps) }
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let session = crate::open(&args.path)?;
    let Kind::Html = args.to;
    let page = export::html(&session, &Options { steps: args.steps.clone() })?;
    if args.out.as_deref() == Some(Path::new("-")) {
        out.write_file(page.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let path =
        args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.html", session.run.name)));
    let mut file = OpenOptions::new();
    file.write(true);
    if args.force {
        file.create(true).truncate(true)
    } else {
        file.create_new(true)
    };
    let mut file = match file.open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!(
                "the file already exists\n  hint: --force replaces it\n  file: {}",
                path.display()
            )
        }
        Err(error) => bail!("cannot write the page: {error}\n  file: {}", path.display()),
    };
    if let Err(error) = file.write_all(page.as_bytes()) {
        // Half a page is none. What is no file, such as a pipe, stays.
        if path.is_file() {
            let _ = fs::remove_file(&path);
        }
        bail!("cannot write the page: {error}\n  file: {}", path.display());
    }
    writeln!(out, "{} · {:.1} MB", path.display(), page.len() as f64 / 1e6)?;
    Ok(ExitCode::SUCCESS)
}
