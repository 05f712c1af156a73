//! What the timeline of a profile costs: `cargo run --release -p session --example timeline FILE…`

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops where it cannot"
)]

use std::path::Path;
use std::time::Instant;

use session::Session;
use session::timeline::{CELLS, Search, wire};
use trace::{EventId, TrackId};

/// Pixels of a wide screen.
const SCREEN: i64 = 1920;

fn main() {
    for file in std::env::args().skip(1) {
        measure(Path::new(&file));
    }
}

fn measure(file: &Path) {
    let session = Session::open(file).unwrap();
    let trace = session.trace();
    let n_events = trace.events.len();
    let begun = Instant::now();
    let timeline = session.timeline();
    let built = begun.elapsed();
    let begun = Instant::now();
    let overview = timeline.overview();
    let told = begun.elapsed();
    let lanes: usize = overview.tracks.iter().map(|it| it.lanes).sum();
    println!("{}: {n_events} events, {} tracks, {lanes} lanes", file.display(), trace.tracks.len());
    println!(
        "  index {built:.1?}, {:.2} bytes an event",
        timeline.heap_bytes() as f64 / n_events as f64
    );
    println!("  overview {told:.1?} the first time: it finds the steps");

    let tracks: Vec<TrackId> = trace.track_ids().collect();
    let middle = overview.start_ps + (overview.end_ps - overview.start_ps) / 2;
    // A cell is at most a pixel wide.
    let widest = ((overview.end_ps - overview.start_ps) / SCREEN * i64::from(CELLS)).ilog2() as u8;
    for level in (10..=widest.max(10)).rev().step_by(4) {
        let first = (middle - (SCREEN << (level - 10)) / 2).max(overview.start_ps) >> level;
        let mut best = (f64::MAX, 0, 0);
        for _ in 0..20 {
            let begun = Instant::now();
            let tiles = [first, first + 1, first + 2];
            let tiles = tiles.map(|it| timeline.tile(level, it, &tracks).unwrap());
            let bytes: usize = tiles.iter().map(|it| wire::encode(it, &trace.strings).len()).sum();
            let spans =
                tiles.iter().flat_map(|it| &it.tracks).map(|it| it.spans.len()).sum::<usize>();
            best = (best.0.min(begun.elapsed().as_secs_f64()), spans, bytes);
        }
        let (seconds, spans, bytes) = best;
        println!(
            "  level {level}: a screen of all tracks {:.2} ms, {spans} spans, {bytes} bytes",
            seconds * 1e3
        );
    }

    let time = |what: &str, run: &dyn Fn()| {
        let begun = Instant::now();
        run();
        println!("  {what} {:.1?}", begun.elapsed());
    };
    let name = trace.name(EventId(n_events as u32 / 2));
    time("search", &|| _ = timeline.search(&Search { text: name, limit: 1000, range: None }));
    time("range over everything", &|| _ = timeline.range(i64::MIN, i64::MAX, None));
    time("range over a thousandth", &|| {
        _ = timeline.range(middle, middle + (overview.end_ps - middle) / 500, None);
    });
    time("event", &|| _ = timeline.event(EventId(n_events as u32 / 2)));
}
