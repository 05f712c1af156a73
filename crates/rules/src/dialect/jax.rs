//! JAX.

use super::tensorflow::{IN_GRAPH_PS, SIDE_BY_SIDE};
use super::{Dialect, EagerCosts, Edit, Word};

pub static DIALECT: Dialect = Dialect {
    name: "jax",
    words: WORDS,
    no_memory_events: "",
    eager: EagerCosts {
        call_ps: CALL_PS,
        on_its_own_ps: ON_ITS_OWN_PS,
        in_graph_ps: IN_GRAPH_PS,
        large_ops: SIDE_BY_SIDE,
        compiles_function: true,
        is_hidden_by_device: false,
        one_op_ps: None,
    },
};

/// Calling one function from Python.
/// Source: measured by `bench/costs/run`, a `jax.jit` function: 0.007 ms, with 50 arguments 0.11 ms.
const CALL_PS: i64 = 110_000_000;
/// What an op called on its own takes beside its work: calls are not told apart from the kernels
/// that they run.
/// Source: measured by `bench/costs/run`, a `jnp.add` of 16 numbers under a profiler: 13.7 to 19.1
/// µs; at worst a machine is somewhat faster than that one.
const ON_ITS_OWN_PS: [i64; 3] = [10_000_000, 14_000_000, 19_000_000];

static WORDS: &[Word] = &[
    Word::code(Edit::CompileStep, "jax-jit", "@jax.jit\ndef train_step(...):"),
    Word::code(Edit::Fuse, "jit-whole-step", "@jax.jit  # around the whole step"),
    Word::code(
        Edit::Vectorize,
        "vmap",
        "gradients = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))",
    ),
    Word::code(
        Edit::StepsPerCall,
        "scanned-steps",
        "state, losses = jax.lax.scan(train_step, state, batches)",
    ),
    Word::code(Edit::SaveSeldom, "save-seldom-jax", "if step % 1000 == 0:\n    save(state)"),
    Word::code(
        Edit::SaveInBackground,
        "save-async-jax",
        "saver = orbax.checkpoint.AsyncCheckpointer(orbax.checkpoint.StandardCheckpointHandler())\n\
         saver.save(path, args=orbax.checkpoint.args.StandardSave(state))",
    ),
    Word::text(
        Edit::ReadSeldom,
        "Read the loss and metrics every N steps: `float()`, `np.asarray()` and `print` wait",
    ),
    Word::code(Edit::Recompute, "recompute-jax", "block = jax.checkpoint(block)"),
    Word::code(Edit::HalfPrecision, "bfloat16-jax", "x = x.astype(jnp.bfloat16)"),
    Word::again(Edit::Bfloat16, "x = x.astype(jnp.bfloat16)"),
    Word::code(
        Edit::Tf32,
        "tf32-jax",
        "jax.config.update(\"jax_default_matmul_precision\", \"tensorfloat32\")",
    ),
    Word::code(Edit::Float32, "float32-jax", "jax.config.update(\"jax_enable_x64\", False)"),
    Word::text(Edit::FewerThreads, "Use as many threads as there are cores"),
    Word::code(
        Edit::ToDeviceAhead,
        "to-device-ahead-jax",
        "following = jax.device_put(next(batches))  # before this step's result is read",
    ),
    Word::code(
        Edit::SplitRequests,
        "split-requests-jax",
        "for part in jnp.array_split(x, parts): serve(part)  # at most MAX rows each",
    ),
    Word::code(
        Edit::PadShapes,
        "pad-jax",
        "x = jnp.pad(x, ((0, BATCH - len(x)), (0, 0)))  # one shape, and a mask",
    ),
    Word::code(
        Edit::CompiledOnce,
        "jit-once",
        "step = jax.jit(step_fn)  # not jax.jit(lambda …) in the loop",
    ),
    Word::code(
        Edit::ArrayArgument,
        "array-argument",
        "step(params, x, jnp.asarray(lr))  # not in static_argnums",
    ),
    Word::code(
        Edit::ProfileLess,
        "profile-less-jax",
        "options = jax.profiler.ProfileOptions()\noptions.python_tracer_level = 0\n\
         jax.profiler.start_trace(folder, profiler_options=options)",
    ),
];
