//! A tile as bytes: columns that a page lays its arrays over without copying.
//!
//! The format is described in `docs/api.md`, under "Tiles".

use hashbrown::HashMap;
use trace::{StrId, Strings};

use super::Tile;

/// "TOB1".
pub const MAGIC: u32 = 0x3142_4F54;

/// Stands for a name that is not told.
pub const NO_NAME: u32 = u32::MAX;

/// Bytes of a span in all columns.
const SPAN_BYTES: usize = 8 + 5 * 4 + 2;

pub fn encode(tile: &Tile, strings: &Strings) -> Vec<u8> {
    let n_spans: usize = tile.tracks.iter().map(|it| it.spans.len()).sum();
    let mut out = Vec::with_capacity(64 + tile.tracks.len() * 16 + n_spans * SPAN_BYTES);
    let mut names = Names::default();
    put(&mut out, [MAGIC.to_le_bytes()]);
    put(&mut out, [[tile.level, 0, 0, 0]]);
    put(&mut out, [tile.tile.to_le_bytes()]);
    put(&mut out, [(tile.tracks.len() as u32).to_le_bytes()]);
    let n_names_at = out.len();
    put(&mut out, [[0; 4]]);
    for track in &tile.tracks {
        let spans = &track.spans;
        put(&mut out, [track.track.0, spans.len() as u32].map(u32::to_le_bytes));
        put(&mut out, spans.iter().map(|it| (it.total_ps as f64).to_le_bytes()));
        put(&mut out, spans.iter().map(|it| it.left.to_le_bytes()));
        put(&mut out, spans.iter().map(|it| it.right.to_le_bytes()));
        put(&mut out, spans.iter().map(|it| it.count.to_le_bytes()));
        put(&mut out, spans.iter().map(|it| it.event.0.to_le_bytes()));
        put(&mut out, spans.iter().map(|it| names.place(it.name).to_le_bytes()));
        put(&mut out, spans.iter().map(|it| [it.lane]));
        put(&mut out, spans.iter().map(|it| [it.kind as u8]));
        out.resize(out.len().next_multiple_of(8), 0);
    }
    out[n_names_at..n_names_at + 4].copy_from_slice(&(names.all.len() as u32).to_le_bytes());
    for name in names.all {
        let text = strings.get(name);
        put(&mut out, [(text.len() as u32).to_le_bytes()]);
        out.extend_from_slice(text.as_bytes());
    }
    out
}

fn put<const N: usize>(out: &mut Vec<u8>, column: impl IntoIterator<Item = [u8; N]>) {
    for it in column {
        out.extend_from_slice(&it);
    }
}

/// Each name once, in the order of its first use.
#[derive(Default)]
struct Names {
    all: Vec<StrId>,
    places: HashMap<StrId, u32>,
}

impl Names {
    fn place(&mut self, name: Option<StrId>) -> u32 {
        let Some(name) = name else { return NO_NAME };
        *self.places.entry(name).or_insert_with(|| {
            self.all.push(name);
            (self.all.len() - 1) as u32
        })
    }
}
