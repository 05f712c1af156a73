//! Step times of known truth, for tests and trials.

use crate::{Random, Series};

/// What disturbs steps. The defaults are those of a shared machine with a CPU-bound step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Deviation of the steps, as a share of the typical step.
    pub spread: f64,
    /// How much of its deviation a step hands to the next one.
    pub memory: f64,
    /// Share of steps that something else delays.
    pub outliers: f64,
    /// Mean delay of those, as a share of the typical step; their sizes are exponential.
    pub outlier_size: f64,
    /// Share of steps in a second mode, and how much slower that is. Modes last for some steps.
    pub mode: f64,
    pub mode_size: f64,
    /// Deviation of the level from one start of the program to the next.
    pub between_runs: f64,
    /// Change of the level from the first to the last step, as a share.
    pub drift: f64,
    /// The first steps take up to so many times longer, fading over that many steps.
    pub warmup: f64,
    pub warmup_steps: f64,
}

impl Default for Noise {
    fn default() -> Noise {
        Noise {
            spread: 0.015,
            memory: 0.5,
            outliers: 0.03,
            outlier_size: 0.5,
            mode: 0.15,
            mode_size: 0.03,
            between_runs: 0.003,
            drift: 0.0,
            warmup: 3.0,
            warmup_steps: 3.0,
        }
    }
}

impl Noise {
    /// Nothing but independent normal noise.
    pub fn white(spread: f64) -> Noise {
        Noise {
            spread,
            memory: 0.0,
            outliers: 0.0,
            mode: 0.0,
            between_runs: 0.0,
            warmup: 0.0,
            ..Noise::default()
        }
    }

    /// One run of `n` steps that typically take `typical_ps`.
    pub fn run(&self, n: usize, typical_ps: i64, random: &mut Random) -> Series {
        let level = typical_ps as f64 * (1.0 + self.between_runs * random.normal());
        let fresh = (1.0 - self.memory.powi(2)).sqrt();
        let mut state = random.normal();
        let mut in_mode = random.uniform() < self.mode;
        let step = |at: usize| {
            state = self.memory * state + fresh * random.normal();
            // Modes last ten steps on average.
            if random.uniform() < 0.1 {
                in_mode = random.uniform() < self.mode;
            }
            let mut factor = 1.0 + self.spread * state;
            factor += if in_mode { self.mode_size } else { 0.0 };
            if random.uniform() < self.outliers {
                factor -= self.outlier_size * (1.0 - random.uniform()).ln();
            }
            factor += self.drift * at as f64 / n as f64;
            factor += self.warmup * (-(at as f64) / self.warmup_steps).exp();
            crate::to_ps(level * factor.max(0.01))
        };
        Series::of_steps((0..n).map(step).collect::<Vec<_>>())
    }
}

/// A series of mean 0 and deviation 1, each value `memory` times the one before plus news.
pub fn autoregressive(n: usize, memory: f64, seed: u64) -> Vec<f64> {
    let mut random = Random::seeded(seed);
    let mut state = random.normal();
    let fresh = (1.0 - memory.powi(2)).sqrt();
    let step = |_| {
        state = memory * state + fresh * random.normal();
        state
    };
    (0..n).map(step).collect()
}
