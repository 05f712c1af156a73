//! Any bytes as a profile with a timeline, and any questions of it: the end of the input says which.

#![no_main]

use libfuzzer_sys::fuzz_target;
use session::Session;
use session::timeline::{Search, wire};
use trace::{EventId, TrackId};

mod pool;

/// Bytes of the questions: a level, a tile, a range and an event.
const QUESTIONS: usize = 1 + 8 + 8 + 8 + 4;

fuzz_target!(init: pool::on_this_thread(), |bytes: &[u8]| {
    let Some((profile, asked)) = bytes.split_last_chunk::<QUESTIONS>() else { return };
    let Ok(session) = Session::from_bytes("host.xplane.pb", profile.to_vec()) else { return };
    let number = |at: usize| {
        let bytes: [u8; 8] = asked[at..at + 8].try_into().expect("there are eight");
        i64::from_le_bytes(bytes)
    };
    let (level, tile, from, to) = (asked[0], number(1), number(9), number(17));
    let event = EventId(asked.last_chunk().map_or(0, |it| u32::from_le_bytes(*it)));
    let trace = session.trace();
    let timeline = session.timeline();
    let tracks: Vec<TrackId> = (0..trace.tracks.len() as u32 + 1).map(TrackId).collect();
    let known = &tracks[..trace.tracks.len()];
    timeline.overview();
    if let Ok(tile) = timeline.tile(level, tile, known) {
        wire::encode(&tile, &trace.strings);
    }
    let _ = timeline.tile(level, tile, &tracks);
    let _ = timeline.counters(level, tile, known);
    let _ = timeline.range(from, to, None);
    let _ = timeline.event(event);
    let text = trace.strings.iter().next().map_or("", |it| it.1);
    let _ = timeline.search(&Search { text, limit: 3, range: Some((from, to)) });
});
