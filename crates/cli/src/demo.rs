//! `strobe demo`: the report of a real profile that is part of the binary.

use std::io::Write as _;
use std::process::ExitCode;

use session::Session;

use crate::output::{Format, Output};
use crate::report;

/// Show the report of a bundled real profile
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Only the report; there is no page yet, so this changes nothing
    #[arg(long, hide = true)]
    no_serve: bool,
}

/// Keras `fit` with a `tf.data` map that runs on one thread.
static PROFILE: &[u8] =
    include_bytes!("../../../testdata/captured/keras_fit/train/plugins/profile/run/host.xplane.pb");

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let _ = args.no_serve;
    let session = Session::from_bytes("demo", PROFILE.to_vec())?;
    if args.format == Format::Text {
        let head =
            out.faint(" A real profile of Keras fit, captured with the TensorBoard callback.");
        writeln!(out, "{head}\n")?;
    }
    report::print(&session.report(), args.format, out)?;
    Ok(ExitCode::SUCCESS)
}
