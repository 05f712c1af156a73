//! Finds the largest of any run of things in the time of its logarithm.
//!
//! ```text
//! things   0 … 31 32 … 63 64 … 95 …      in a row; only whole blocks are remembered
//! blocks   [  7 ] [ 40  ] [ 64  ] …      the largest of 32 things
//! blocks   [         40            …     the largest of 32 blocks, and so on
//! ```
//!
//! It remembers the largest key and whose it is: looking that one up would miss the cache, block
//! by block.

use std::ops::Range;

/// So many bits of a place are its place in a block.
const BLOCK_BITS: usize = 5;

/// Things in a block, and blocks in a block of the next size.
pub(super) const BLOCK: usize = 1 << BLOCK_BITS;

/// What [`Peaks`] are the peaks of: things in a row, each with a key.
pub(super) trait Heights {
    type Key: PartialOrd + Copy;
    /// The thing at a place.
    fn at(&self, place: usize) -> u32;
    fn key(&self, thing: u32) -> Self::Key;
}

/// The things with the largest keys, block by block; of equal ones the first.
#[derive(Debug, Default)]
pub(super) struct Peaks<K> {
    n: usize,
    /// Of blocks of 32 things, then of blocks of 1024, and so on.
    things: Vec<u32>,
    keys: Vec<K>,
}

impl<K: PartialOrd + Copy> Peaks<K> {
    pub fn new(n: usize, of: &impl Heights<Key = K>) -> Peaks<K> {
        let n_blocks = blocks_below(n, usize::MAX);
        let (things, keys) = (Vec::with_capacity(n_blocks), Vec::with_capacity(n_blocks));
        let mut peaks = Peaks { n, things, keys };
        for level in 1.. {
            let n_blocks = n >> (level * BLOCK_BITS);
            for block in 0..n_blocks {
                let parts = block * BLOCK..(block + 1) * BLOCK;
                let largest = parts
                    .map(|it| peaks.of_block(of, level - 1, it << ((level - 1) * BLOCK_BITS)))
                    .reduce(|best, it| if it.1 > best.1 { it } else { best });
                if let Some((thing, key)) = largest {
                    peaks.things.push(thing);
                    peaks.keys.push(key);
                }
            }
            if n_blocks < BLOCK {
                break;
            }
        }
        peaks
    }

    /// The largest of the block of a level that begins at `place`. On level 0 that is one thing.
    fn of_block(&self, of: &impl Heights<Key = K>, level: usize, place: usize) -> (u32, K) {
        if level == 0 {
            let thing = of.at(place);
            return (thing, of.key(thing));
        }
        let block = blocks_below(self.n, level) + (place >> (level * BLOCK_BITS));
        (self.things[block], self.keys[block])
    }

    /// Hands the things whose key is at least `limit` to `high`, by their place; answers the
    /// largest of the others. Takes the time of the logarithm for each that is handed over.
    pub fn split(
        &self,
        places: Range<usize>,
        of: &impl Heights<Key = K>,
        limit: Option<K>,
        mut high: impl FnMut(u32),
    ) -> Option<u32> {
        let mut largest: Option<(u32, K)> = None;
        let mut is_high = |level: usize, (thing, key): (u32, K)| {
            if limit.is_some_and(|it| key >= it) {
                if level == 0 {
                    high(thing);
                }
                return true;
            }
            if largest.is_none_or(|it| key > it.1) {
                largest = Some((thing, key));
            }
            false
        };
        let end = places.end.min(self.n);
        let mut place = places.start;
        while place < end {
            // The largest block that begins here and does not go beyond the end.
            let mut level = 0;
            if place.is_multiple_of(BLOCK) && end - place >= BLOCK {
                let fits = (end - place).ilog2() as usize / BLOCK_BITS;
                level = fits.min(place.trailing_zeros() as usize / BLOCK_BITS);
            }
            // Where somebody in it is high, a smaller one.
            while is_high(level, self.of_block(of, level, place)) && level > 0 {
                level -= 1;
            }
            place += 1 << (level * BLOCK_BITS);
        }
        largest.map(|it| it.0)
    }

    /// The largest of a run.
    pub fn largest(&self, places: Range<usize>, of: &impl Heights<Key = K>) -> Option<u32> {
        self.split(places, of, None, |_| ())
    }

    pub fn heap_bytes(&self) -> usize {
        self.things.capacity() * size_of::<u32>() + self.keys.capacity() * size_of::<K>()
    }
}

/// How many blocks the levels from 1 to below `level` have.
fn blocks_below(n: usize, level: usize) -> usize {
    let mut n_blocks = 0;
    let mut left = n >> BLOCK_BITS;
    for _ in 1..level {
        if left == 0 {
            break;
        }
        n_blocks += left;
        left >>= BLOCK_BITS;
    }
    n_blocks
}

#[cfg(test)]
mod tests {
    use super::{Heights, Peaks};

    struct Keys(Vec<i64>);

    impl Heights for Keys {
        type Key = i64;
        fn at(&self, place: usize) -> u32 {
            place as u32
        }
        fn key(&self, thing: u32) -> i64 {
            self.0[thing as usize]
        }
    }

    #[test]
    fn every_run_splits_as_if_all_of_it_had_been_looked_at() {
        for n in [0, 1, 31, 32, 33, 1023, 1024, 1025, 40_000] {
            let keys = Keys((0..n).map(|it: i64| it * 7919 % 1009).collect());
            let peaks = Peaks::new(n as usize, &keys);
            assert!(peaks.heap_bytes() <= n as usize * 12 / 31);
            let n = n as usize;
            for run in [0..n, 0..n / 2, n / 3..n, n / 5..n / 2, n / 2..n / 2, 0..n + 9] {
                for limit in [0, 500, 1000, 1008, 5000] {
                    let mut high = Vec::new();
                    let low = peaks.split(run.clone(), &keys, Some(limit), |it| high.push(it));
                    let places = run.start as u32..run.end.min(n) as u32;
                    let (above, below): (Vec<u32>, Vec<u32>) =
                        places.clone().partition(|it| keys.key(*it) >= limit);
                    assert_eq!(high, above);
                    let largest = below.into_iter().rev().max_by_key(|it| keys.key(*it));
                    assert_eq!(low, largest, "of {n}, {run:?} below {limit}");
                    let of_all = places.rev().max_by_key(|it| keys.key(*it));
                    assert_eq!(peaks.largest(run.clone(), &keys), of_all);
                }
            }
        }
    }
}
