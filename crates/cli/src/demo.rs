//! `strobe demo`: the report of a real profile that is part of the binary, then its page.

use std::io::Write as _;
use std::process::ExitCode;

use server::Runs;
use session::Session;

use crate::output::{Format, Output};
use crate::{report, serve};

/// Show the report of a bundled real profile, then its page
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Only the report
    #[arg(long)]
    no_serve: bool,
    #[command(flatten)]
    at: serve::At,
}

/// Keras `fit` with a `tf.data` map that runs on one thread.
static PROFILE: &[u8] =
    include_bytes!("../../../testdata/captured/keras_fit/train/plugins/profile/run/host.xplane.pb");

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let session = Session::from_bytes("demo", PROFILE.to_vec())?;
    if args.format == Format::Text {
        let head =
            out.faint(" A real profile of Keras fit, captured with the TensorBoard callback.");
        writeln!(out, "{head}\n")?;
    }
    report::print(&session.report(), args.format, false, out)?;
    // For scripts the report is all; without a page the report is what there is.
    if !args.no_serve && args.format == Format::Text && server::has_page() {
        writeln!(out)?;
        serve::serve(Runs::opened(session), &args.at, None, out)?;
    }
    Ok(ExitCode::SUCCESS)
}
