//! How sure a finding is, in a few levels that all rules share.
//!
//! A level is a judgement: how often findings of it are right has not been measured.

/// The profile itself shows the problem and its time.
/// Source: choice, next to certain; what every finding starts from.
pub const SHOWN: f64 = 0.9;
/// A little less than that: what was measured allows for another reading.
/// Source: choice, a guess.
pub const STRONG: f64 = 0.85;
/// The size was measured, the cause is inferred.
/// Source: choice, a guess.
pub const MEASURED: f64 = 0.8;
/// The cause is clear, and its share of the step is an estimate.
/// Source: choice, a guess.
pub const LIKELY: f64 = 0.7;
/// More likely than not; healthy runs can look the same.
/// Source: choice, a guess.
pub const RATHER: f64 = 0.6;
/// As likely as not.
/// Source: choice, a coin.
pub const EVEN: f64 = 0.5;
/// Something else, such as a busy machine, explains it as well.
/// Source: choice, a guess.
pub const DOUBTFUL: f64 = 0.4;
/// Something harmless is the better explanation.
/// Source: choice, a guess.
pub const HARDLY: f64 = 0.3;
