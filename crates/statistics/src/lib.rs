//! What step times say, and how sure that is.
//!
//! ```text
//! step times ─▶ warm-up cut off ─▶ Run ─┬─▶ Summary: median, percentiles, drift, modes
//!               (change-points)         └─▶ Comparison of two sets of runs: shift and verdict
//! ```
//!
//! Step times are no independent draws: neighbours resemble each other, a few are far out, the
//! machine drifts, and each start of a program has its own level. So intervals come from a
//! bootstrap of blocks inside runs and of runs, every figure has an interval or is absent, and a
//! comparison may answer that it cannot tell.
//!
//! Times are whole picoseconds in and out; floats live inside computations only. The same input
//! gives the same answer: the generator has a fixed seed.

mod compare;
mod dependence;
mod drift;
mod modes;
mod random;
mod resample;
mod run;
mod series;
pub mod simulate;
mod student;
mod summary;
mod warmup;

pub use compare::{Comparison, Doubt, Question, Verdict, compare};
pub use drift::Drift;
pub use modes::{Mode, Modes};
pub use random::Random;
pub use run::{FEWEST_STEPS, Run};
pub use series::Series;
pub use summary::{Interval, Percentile, Summary, summary};
pub use warmup::{Steadiness, Warmup};

/// A time as a float inside a computation, back as whole picoseconds; hostile values saturate.
fn to_ps(value: f64) -> i64 {
    value.round() as i64
}
