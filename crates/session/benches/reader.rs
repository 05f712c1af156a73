//! The reader's speed beside a plain read of the same file.
//!
//! `cargo bench -p session -- FILE…`; without a file a synthetic one of 5 M events is made.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops where it cannot"
)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use session::Session;

fn main() {
    let mut files: Vec<PathBuf> =
        std::env::args().skip(1).filter(|it| !it.starts_with("--")).map(PathBuf::from).collect();
    let made = std::env::temp_dir().join("strobe-reader-bench.xplane.pb");
    if files.is_empty() {
        let mut out = std::io::BufWriter::new(std::fs::File::create(&made).unwrap());
        synth::write_big(&mut out, synth::Shape::Gpu, 5_000_000).unwrap();
        files.push(made.clone());
    }
    println!("best of 3, CPU seconds over all cores");
    println!("{:<34} {:>11} {:>8} {:>11} {:>10}", "what", "events", "CPU s", "M events/s", "MB/s");
    for file in &files {
        let bytes = std::fs::metadata(file).unwrap().len();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let plain = best(|| plain_read(file));
        row(&format!("{name}: plain read"), 0, plain, bytes);
        let mut events = 0;
        let mut held = 0;
        let read = best(|| {
            let session = Session::open(file).unwrap();
            events = session.trace().events.len();
            held = session.trace().heap_bytes();
        });
        row(&format!("{name}: into the trace"), events, read, bytes);
        println!("{:<34} {:.1} bytes held an event", "", held as f64 / events as f64);
    }
    let _ = std::fs::remove_file(made);
}

fn row(what: &str, events: usize, cpu: f64, bytes: u64) {
    let rate = |n: f64| n / cpu.max(1e-3) / 1e6;
    println!(
        "{what:<34} {events:>11} {cpu:>8.2} {:>11.1} {:>10.0}",
        rate(events as f64),
        rate(bytes as f64)
    );
}

/// One byte of every cache line.
fn plain_read(file: &Path) {
    let bytes = session::load(file).unwrap();
    let (pieces, mut buffer) = (sources::Pieces::new(&*bytes), Vec::new());
    let mut sum = 0;
    for at in (0..bytes.size()).step_by(4 << 20) {
        let piece = pieces.read(at..at + (4 << 20), &mut buffer);
        sum += piece.iter().step_by(64).map(|&it| u64::from(it)).sum::<u64>();
    }
    std::hint::black_box(sum);
}

fn best(mut run: impl FnMut()) -> f64 {
    (0..3)
        .map(|_| {
            let before = cpu_seconds();
            run();
            cpu_seconds() - before
        })
        .fold(f64::MAX, f64::min)
}

/// User and system time of this process; where the system does not tell, wall time.
fn cpu_seconds() -> f64 {
    thread_local!(static BEGUN: Instant = Instant::now());
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|it| it.parse::<f64>().ok());
    match (ticks(11), ticks(12)) {
        // Linux counts these in hundredths of a second, whatever the machine.
        (Some(user), Some(system)) => (user + system) / 100.0,
        _ => BEGUN.with(|it| it.elapsed().as_secs_f64()),
    }
}
