//! Violations that are known, each a law and a profile. Repairing one removes its entry.

pub const KNOWN: &[(&str, &str)] = &[
    // What a rule cannot use is called absent; `python_time` and `input_stage` have it.
    ("absence", "corpus/jax-tpu-v6e4-inference"),
    ("absence", "corpus/jax08-mi300x-attention"),
    ("absence", "corpus/tf28-m1pro-metal-21batches"),
    // Of eight devices with as many kernels each, the last in the file is taken for the busiest
    // (`look_at_device` of `rules/launches.rs`): their order decides whether there is a `sync-stall`.
    ("all", "corpus/jax08-mi300x-conv"),
    // A category with time in it stays in the list of those that cannot be told.
    ("breakdown", "synthetic/tpu"),
    // The rows shown are a few of those counted.
    ("counts", "corpus/tf2-v100x8-multiworker"),
    ("counts", "synthetic/tiny_ops"),
    // `op_time` counts what lies outside of the steps that count: a cut inside a step lifts an op
    // over the limit of `dominant-op`. Why the other loses its `sync-stall` was not looked into.
    ("cut", "corpus/jax08-mi300x-conv"),
    ("cut", "synthetic/unmarked_calls"),
    // Only a sentence, where a table or an event could be opened.
    ("evidence", "big/gpu"),
    ("evidence", "big/one-line"),
    ("evidence", "corpus/tf2-v100x8-multiworker"),
    ("evidence", "scalars/keras"),
    ("evidence", "synthetic/input_70"),
    ("evidence", "synthetic/odd_encodings"),
    ("evidence", "synthetic/straggler"),
    ("evidence", "synthetic/tpu"),
    ("evidence", "synthetic/two_hosts"),
    ("evidence", "synthetic/unmarked_calls"),
    // Ranges wider than six times.
    ("gain-range", "captured/retrace_loop"),
    ("gain-range", "scalars/keras"),
    ("gain-range", "synthetic/small_batch"),
    ("gain-range", "workloads/checkpoint_bound"),
    ("gain-range", "workloads/file_read_bound"),
    ("gain-range", "workloads/input_bound_map"),
    ("gain-range", "workloads/input_bound_map_defaults"),
    ("gain-range", "workloads/input_bound_python"),
    ("gain-range", "workloads/jax_recompile"),
    ("gain-range", "workloads/one_op_dominates"),
    ("gain-range", "workloads/retracing"),
    ("gain-range", "workloads/tiny_ops"),
    // A promise of one captured step.
    ("one-step", "corpus/tf2-v100x8-multiworker"),
    // As with `all`.
    ("shuffle", "corpus/jax08-mi300x-conv"),
];
