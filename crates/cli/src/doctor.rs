//! `strobe doctor`: is this capture fit to be judged; is this machine fit to capture.

mod capture;
mod machine;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use crate::output::{Format, Grid, Output};
use crate::table;

/// Check whether a capture is fit to be judged, or this machine fit to capture
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A profile, a run folder or a log folder; without it, this machine is looked at
    path: Option<PathBuf>,
    /// The Python whose frameworks are looked at [default: python, else python3, on PATH]
    #[arg(long, value_name = "PATH", conflicts_with = "path")]
    python: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// One thing looked at.
struct Check {
    what: &'static str,
    state: State,
    seen: String,
    /// The command or the change that mends it.
    mend: String,
}

impl Check {
    fn good(what: &'static str, seen: impl Into<String>) -> Check {
        Check { what, state: State::Good, seen: seen.into(), mend: String::new() }
    }

    fn weak(what: &'static str, seen: impl Into<String>, mend: impl Into<String>) -> Check {
        Check { what, state: State::Weak, seen: seen.into(), mend: mend.into() }
    }

    fn bad(what: &'static str, seen: impl Into<String>, mend: impl Into<String>) -> Check {
        Check { what, state: State::Bad, seen: seen.into(), mend: mend.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    Weak,
    Bad,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Good => "good",
            State::Weak => "weak",
            State::Bad => "bad",
        }
    }
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let checks = match &args.path {
        Some(path) => capture::checks(&crate::open(path)?, path),
        None => machine::checks(Path::new("/"), args.python.as_deref()),
    };
    let grid = Grid {
        columns: ["check", "state", "seen", "what to do"].map(str::to_owned).to_vec(),
        right: vec![false; 4],
        rows: checks
            .iter()
            .map(|it| {
                let mend = if it.state == State::Good { "" } else { it.mend.as_str() };
                vec![
                    it.what.to_owned(),
                    it.state.word().to_owned(),
                    it.seen.clone(),
                    mend.to_owned(),
                ]
            })
            .collect(),
    };
    if args.format == Format::Text {
        use std::io::Write as _;
        for check in &checks {
            let state = check.state.word();
            writeln!(out, " {:<16} {:<5} {}", check.what, state, check.seen)?;
            if check.state != State::Good {
                let text = crate::output::wrap(&check.mend, out.width, "                        ");
                write!(out, "{text}")?;
            }
        }
    } else {
        table::print(&grid, args.format, out, || {
            let value = |it: &Check| json!({"check": it.what, "state": it.state.word(), "seen": it.seen, "mend": it.mend});
            json!(checks.iter().map(value).collect::<Vec<_>>())
        })?;
    }
    let worst_is_bad = checks.iter().any(|it| it.state == State::Bad);
    let code = if args.path.is_some() && worst_is_bad { crate::NOT_ENOUGH } else { 0 };
    Ok(ExitCode::from(code))
}
