//! Violations that are known, each a law and a profile. Repairing one removes its entry.

pub const KNOWN: &[(&str, &str)] = &[
    // The rows shown are a few of those counted.
    ("counts", "corpus/tf2-v100x8-multiworker"),
    ("counts", "kineto/hta-a100-nccl-meta"),
    ("counts", "kineto/param-dlrm"),
    ("counts", "kineto/param-linear-2080ti"),
    ("counts", "synthetic/tiny_ops"),
    // Eight ranks of one step each: the promise rests on eight steps.
    ("one-step", "kineto/param-dlrm"),
    // `op_time` counts what lies outside of the steps that count: a cut inside a step lifts an op
    // over the limit of `dominant-op`.
    ("cut", "synthetic/unmarked_calls"),
];
