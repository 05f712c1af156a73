//! The changes that rules advise. Their names are stable: scripts, `strobe try` and the benchmark
//! of diagnoses tell edits apart by them.

/// Declares the changes, each with its stable name.
macro_rules! changes {
    ($($(#[doc = $doc:literal])* $change:ident = $name:literal),* $(,)?) => {
        /// What an edit does, whatever the framework calls it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Change {
            $($(#[doc = $doc])* $change),*
        }

        impl Change {
            pub const ALL: &[Change] = &[$(Change::$change),*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Change::$change => $name),*
                }
            }

            /// What it does, in one sentence.
            pub fn doc(self) -> &'static str {
                match self {
                    $(Change::$change => concat!($($doc),*)),*
                }
            }
        }
    };
}

changes! {
    /// Run a `map` of the input pipeline on several threads.
    ParallelMap = "parallel-map",
    /// Read several files at the same time.
    ParallelInterleave = "parallel-interleave",
    /// Make the next batch while this one is used.
    Prefetch = "prefetch",
    /// Keep the result of a stage in memory.
    Cache = "cache",
    /// Do less work for each element, or work on whole batches.
    CheaperInput = "cheaper-input",
    /// Replace Python in the input pipeline by the framework's own ops.
    NativeInput = "native-input",
    /// Run the Python of the input pipeline in several workers.
    InputWorkers = "input-workers",
    /// Pack many small files into a few large ones.
    PackFiles = "pack-files",
    /// Store files uncompressed, or closer to the machine.
    FasterStorage = "faster-storage",
    /// Replace a Python loop over examples by one call on the whole batch.
    Vectorize = "vectorize",
    /// Put the whole step into one compiled function.
    CompileStep = "compile-step",
    /// Compile with XLA, so that small ops become a few large ones.
    Fuse = "fuse",
    /// Run several steps in one call.
    StepsPerCall = "steps-per-call",
    /// Use a larger batch.
    LargerBatch = "larger-batch",
    /// Do it every N steps instead of in every one.
    EveryNSteps = "every-n-steps",
    /// Do it in the background.
    InBackground = "in-background",
    /// Pass tensors or arrays instead of Python numbers.
    TensorArguments = "tensor-arguments",
    /// Let one compiled function take inputs of many shapes.
    RelaxShapes = "relax-shapes",
    /// Pad or bucket inputs to a few shapes.
    PadShapes = "pad-shapes",
    /// Create a function or an object once, before the loop.
    CreateOnce = "create-once",
    /// Replace an op by a cheaper one that gives the same result.
    CheaperOp = "cheaper-op",
    /// Compute in 32 bits instead of 64.
    Float32 = "float32",
    /// Compute in 16 bits.
    HalfPrecision = "half-precision",
    /// Update only the rows of a table that were used.
    SparseUpdate = "sparse-update",
    /// Copy the next batch to the device while this one computes.
    DevicePrefetch = "device-prefetch",
    /// Copy less between host and device.
    FewerCopies = "fewer-copies",
    /// Overlap communication with computation, or send less.
    OverlapCommunication = "overlap-communication",
    /// Give every device the same amount of work.
    BalanceWork = "balance-work",
    /// Shape the launch of a kernel for the device.
    FillDevice = "fill-device",
    /// Use less memory.
    LessMemory = "less-memory",
    /// Let go of memory that nobody needs.
    ReleaseMemory = "release-memory",
    /// Change the machine, not the program.
    Machine = "machine",
    /// Use fewer threads.
    FewerThreads = "fewer-threads",
    /// Capture differently, to see more or to disturb less.
    Capture = "capture",
}

#[cfg(test)]
mod tests {
    use super::Change;

    #[test]
    fn names_are_kebab_case_and_used_once() {
        let mut names: Vec<&str> = Change::ALL.iter().map(|it| it.name()).collect();
        let n = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n);
        for it in names {
            assert!(
                it.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-'),
                "{it}"
            );
        }
    }
}
