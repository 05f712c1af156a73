//! PyTorch.

use super::{Dialect, EagerCosts, Edit, Word};

pub static DIALECT: Dialect = Dialect {
    name: "torch",
    words: WORDS,
    no_memory_events: "; record them with profile_memory=True",
    eager: EagerCosts {
        call_ps: CALL_PS,
        on_its_own_ps: ON_ITS_OWN_PS,
        in_graph_ps: IN_GRAPH_PS,
        large_ops: ONE_BY_ONE,
        compiles_function: false,
        is_hidden_by_device: true,
        one_op_ps: Some(ALONE_PS),
    },
};

/// Calling a compiled part, forward and backward.
/// Source: measured by `bench/costs/run`, a product and a sum with their gradients: 0.27 ms.
const CALL_PS: i64 = 270_000_000;
/// What an op's own work has too much when it is called on its own.
/// Source: physical, an op's work is counted without what leads to it.
const ON_ITS_OWN_PS: [i64; 3] = [0; 3];
/// What a call inside a compiled part costs beside its kernel.
/// Source: measured by `bench/costs/run`, ten small products and their gradients, compiled: 0.25 ms
/// beyond the call, 30 kernels of 7.4 µs; a guess for programs of other ops.
const IN_GRAPH_PS: [i64; 3] = [5_000_000, 2_000_000, 500_000];
/// What is left of large ops: the compiler keeps their kernels and runs them one after another.
/// Source: choice, a guess: convolutions and products take as long; at best a tenth is fused.
const ONE_BY_ONE: [f64; 3] = [1.0, 1.0, 0.9];
/// What an op on its own takes beside its work, under a profiler.
/// Source: measured by `bench/costs/run`, ops on 16 numbers: 3.3 to 5.7 µs, a small product 8.9 µs;
/// at worst half as much again.
const ALONE_PS: [i64; 3] = [13_000_000, 8_000_000, 5_000_000];

const WORKERS: &str =
    "loader = DataLoader(data, batch_size, num_workers=4, persistent_workers=True)";
const AHEAD: &str = "Make batches in worker processes, ahead of the step";
const COMPILE: &str = "model = torch.compile(model)";
const AUTOCAST: &str = "with torch.autocast(device_type=device.type, dtype=torch.bfloat16):\n    loss = loss_of(model(x), y)";

static WORDS: &[Word] = &[
    Word::code(Edit::Workers, "workers-torch", WORKERS),
    Word::again(Edit::ParallelMap, WORKERS).says(AHEAD),
    Word::again(Edit::ParallelAndAhead, WORKERS).says(AHEAD),
    Word::again(Edit::Prefetch, WORKERS).says(AHEAD),
    Word::again(Edit::ParallelReads, WORKERS).says(AHEAD),
    Word::again(Edit::FromArrays, WORKERS).says(AHEAD),
    Word::again(Edit::NativeInput, WORKERS).says(AHEAD),
    Word::code(
        Edit::MoreWorkers,
        "more-workers-torch",
        "loader = DataLoader(data, batch_size, num_workers=8, persistent_workers=True)",
    ),
    Word::code(
        Edit::ToDeviceAhead,
        "pin-memory-torch",
        "loader = DataLoader(data, batch_size, num_workers=4, pin_memory=True)\n\
         x = x.to(device, non_blocking=True)",
    )
    .says("Copy batches from pinned memory, while the device computes"),
    Word::code(Edit::CompileStep, "compile-torch", COMPILE),
    Word::again(Edit::Fuse, COMPILE).says("Compile the model").compiles(),
    Word::again(Edit::FuseModel, COMPILE).says("Compile the model").compiles(),
    Word::text(
        Edit::Vectorize,
        "If the loop's {} passes are the examples of a batch, or steps in time, compute them in one op",
    ),
    Word::code(
        Edit::CompileAnyShape,
        "dynamic-torch",
        "model = torch.compile(model, dynamic=True)",
    ),
    Word::code(
        Edit::PadShapes,
        "pad-torch",
        "x = torch.nn.functional.pad(x, (0, 0, 0, LENGTH - x.shape[0]))  # and a mask",
    )
    .says("Or pad the inputs to a few shapes"),
    Word::code(Edit::HalfPrecision, "autocast-torch", AUTOCAST),
    Word::again(Edit::Bfloat16, AUTOCAST),
    Word::code(Edit::Tf32, "tf32-torch", "torch.set_float32_matmul_precision(\"high\")"),
    Word::code(
        Edit::Recompute,
        "recompute-torch",
        "y = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
    ),
    Word::code(Edit::Float32, "float32-torch", "model, x = model.float(), x.float()"),
    Word::code(Edit::FewerThreads, "fewer-threads-torch", "torch.set_num_threads({})"),
    Word::code(
        Edit::SaveSeldom,
        "save-seldom-torch",
        "if step % 1000 == 0:\n    torch.save(model.state_dict(), path)",
    ),
    Word::text(
        Edit::ReadSeldom,
        "Read the loss and metrics every N steps: `.item()`, `.cpu()` and `print` wait",
    ),
    Word::code(Edit::BatchOf, "batch-of-torch", "loader = DataLoader(data, batch_size={})"),
    Word::code(
        Edit::SplitRequests,
        "split-requests-torch",
        "for part in torch.split(x, MAX): serve(part)  # at most MAX rows at a time",
    ),
    Word::code(
        Edit::ProfileLess,
        "profile-less-torch",
        "torch.profiler.profile(record_shapes=False, profile_memory=False, with_stack=False)",
    ),
];
