//! Violations that are known, each a law and a profile. Repairing one removes its entry.

pub const KNOWN: &[(&str, &str)] = &[
    // `op_time` counts what lies outside of the steps that count: a cut inside a step lifts an op
    // over the limit of `dominant-op`.
    ("cut", "synthetic/unmarked_calls"),
];
