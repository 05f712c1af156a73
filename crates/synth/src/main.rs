//! The command `synth`: writes the scenarios into a folder, or one big profile into a file.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use synth::{Scenario, Shape, scenarios, wild_scenarios, write_big};

const USAGE: &str = "usage: synth list
       synth small DIR                                        every scenario below DIR
       synth big OUT [--shape gpu|tf-ops|one-line] [--events N]   one profile of at least N events";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args, &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to tell of an error that cannot be printed.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &[&str], out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    match args {
        ["list"] => {
            for scenario in scenarios().into_iter().chain(wild_scenarios()) {
                writeln!(out, "{:20} {}", scenario.name, scenario.about)?;
            }
            Ok(())
        }
        ["small", dir] => Ok(small(Path::new(dir))?),
        ["big", path, options @ ..] => {
            let (shape, events) = big_options(options)?;
            let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
            let written = write_big(&mut file, shape, events)?;
            file.flush()?;
            writeln!(
                out,
                "{} events in {} steps, {} bytes",
                written.events, written.steps, written.bytes
            )?;
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

fn big_options(options: &[&str]) -> Result<(Shape, u64), Box<dyn Error>> {
    let (mut shape, mut events) = (Shape::Gpu, 1_000_000);
    for option in options.chunks(2) {
        match option {
            ["--shape", "gpu"] => shape = Shape::Gpu,
            ["--shape", "tf-ops"] => shape = Shape::TfOps,
            ["--shape", "one-line"] => shape = Shape::OneLine,
            ["--events", number] => events = number.replace('_', "").parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    Ok((shape, events))
}

fn small(dir: &Path) -> io::Result<()> {
    for (path, bytes) in scenarios().iter().chain(&wild_scenarios()).flat_map(Scenario::tree) {
        let path = dir.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, bytes)?;
    }
    Ok(())
}
