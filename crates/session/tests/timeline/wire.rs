//! Takes a tile's bytes apart, as the page does.

use session::timeline::{Tile, wire};
use trace::Trace;

struct Bytes<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        self.at += n;
        &self.all[self.at - n..self.at]
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn u32s(&mut self, n: usize) -> Vec<u32> {
        assert!(self.at.is_multiple_of(4), "aligned");
        (0..n).map(|_| self.u32()).collect()
    }

    fn f64s(&mut self, n: usize) -> Vec<f64> {
        assert!(self.at.is_multiple_of(8), "aligned");
        (0..n).map(|_| f64::from_le_bytes(self.take(8).try_into().unwrap())).collect()
    }
}

/// What is decoded is what was encoded.
pub fn check(trace: &Trace, tile: &Tile) {
    let all = wire::encode(tile, &trace.strings);
    let mut bytes = Bytes { all: &all, at: 0 };
    assert_eq!(bytes.take(4), b"TOB1");
    assert_eq!(bytes.take(4), [tile.level, 0, 0, 0]);
    assert_eq!(bytes.take(8), tile.tile.to_le_bytes());
    assert_eq!(bytes.u32() as usize, tile.tracks.len());
    let n_names = bytes.u32();
    let mut named = Vec::new();
    for track in &tile.tracks {
        assert!(bytes.at.is_multiple_of(8), "a track begins at a multiple of eight");
        assert_eq!(bytes.u32(), track.track.0);
        let n = bytes.u32() as usize;
        assert_eq!(n, track.spans.len());
        let total = bytes.f64s(n);
        let [left, right, count, event, name] = [(); 5].map(|()| bytes.u32s(n));
        let (lane, kind) = (bytes.take(n), bytes.take(n));
        let padding = bytes.at.next_multiple_of(8) - bytes.at;
        assert!(bytes.take(padding).iter().all(|&it| it == 0));
        for (at, span) in track.spans.iter().enumerate() {
            assert_eq!(total[at], span.total_ps as f64);
            assert_eq!([left[at], right[at], count[at]], [span.left, span.right, span.count]);
            assert_eq!(event[at], span.event.0);
            assert_eq!(
                (lane[at], trace::OpKind::ALL[usize::from(kind[at])]),
                (span.lane, span.kind)
            );
            match span.name {
                Some(text) => named.push((name[at], trace.text(text))),
                None => assert_eq!(name[at], wire::NO_NAME),
            }
        }
    }
    let mut names = Vec::new();
    for _ in 0..n_names {
        let n = bytes.u32() as usize;
        names.push(std::str::from_utf8(bytes.take(n)).unwrap());
    }
    assert_eq!(bytes.at, all.len(), "nothing is left over");
    for (place, text) in named {
        assert_eq!(names[place as usize], text);
    }
}
