//! TensorFlow and Keras.

use super::{Dialect, EagerCosts, Edit, Word};

pub static DIALECT: Dialect = Dialect {
    name: "tensorflow",
    words: WORDS,
    no_memory_events: "; on a CPU only TensorFlow with oneDNN writes them (TF_ENABLE_ONEDNN_OPTS=1)",
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
/// Source: measured by `bench/costs/run`, a `tf.function` of one argument: 0.34 to 0.36 ms; with 50
/// variables 0.47 ms.
const CALL_PS: i64 = 350_000_000;
/// What a kernel called on its own takes beside its work, under a profiler.
/// Source: measured by `bench/costs/run`, the run of a kernel that adds 16 numbers: 6.7 to 9.4 µs,
/// 6.3 to 13 µs in single calls; at worst a machine is somewhat faster than that one.
const ON_ITS_OWN_PS: [i64; 3] = [5_000_000, 8_000_000, 13_000_000];
/// What an op costs inside a graph beside its own work.
/// Source: measured by `bench/costs/run`, in TensorFlow 2.21's executor: 0.37 to 0.59 µs one after
/// another, 0.58 to 1.1 µs side by side, up to 1.6 µs in single rounds.
pub(super) const IN_GRAPH_PS: [i64; 3] = [1_600_000, 700_000, 350_000];
/// What is left of larger ops, which a graph runs side by side and fuses.
/// Source: choice, a guess: at best two at a time, and a fifth of them fused.
pub(super) const SIDE_BY_SIDE: [f64; 3] = [1.0, 0.8, 0.4];

static WORDS: &[Word] = &[
    Word::code(Edit::CompileStep, "tf-function", "@tf.function\ndef train_step(...):"),
    Word::text(Edit::CompileModel, "In Keras, compile the model without run_eagerly=True"),
    Word::code(Edit::Fuse, "xla", "@tf.function(jit_compile=True)"),
    Word::again(Edit::FuseModel, "@tf.function(jit_compile=True)")
        .says("Compile the step with XLA"),
    Word::code(
        Edit::StepsPerCall,
        "steps-per-execution",
        "model.compile(..., steps_per_execution=10)",
    ),
    Word::code(
        Edit::SaveSeldom,
        "save-seldom",
        "if step % 1000 == 0:\n    checkpoint.save(path)",
    ),
    Word::code(
        Edit::SaveInBackground,
        "save-async",
        "options = tf.train.CheckpointOptions(enable_async=True)\ncheckpoint.save(path, options=options)",
    )
    .says(
        "Or write in the background (not for Keras 3 models: TensorFlow raises a ValueError for \
         them)",
    ),
    Word::text(
        Edit::ReadSeldom,
        "Read the loss and metrics every N steps: `.numpy()`, `float()` and `print` wait",
    ),
    Word::code(Edit::Recompute, "recompute", "block = tf.recompute_grad(block)"),
    Word::code(
        Edit::HalfPrecision,
        "mixed-float16",
        "keras.mixed_precision.set_global_policy(\"mixed_float16\")",
    ),
    Word::code(
        Edit::Bfloat16,
        "mixed-bfloat16",
        "keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")",
    ),
    Word::code(Edit::Tf32, "tf32", "tf.config.experimental.enable_tensor_float_32_execution(True)"),
    Word::code(
        Edit::Float32,
        "float32",
        "keras.config.set_floatx(\"float32\")\nx = x.astype(\"float32\")",
    ),
    Word::code(
        Edit::SparseUpdate,
        "some-rows",
        "table_optimizer = keras.optimizers.Adagrad(0.01)\n\
         table_optimizer.apply([table_gradient], [embedding.embeddings])",
    ),
    Word::code(
        Edit::FewerThreads,
        "fewer-threads",
        "tf.config.threading.set_intra_op_parallelism_threads({})",
    ),
    Word::code(
        Edit::ToDeviceAhead,
        "to-device-ahead",
        "ds = ds.apply(tf.data.experimental.prefetch_to_device(\"/gpu:0\"))",
    ),
    Word::code(
        Edit::SplitRequests,
        "split-requests",
        "for part in tf.split(x, parts): serve(part)  # at most MAX rows at a time",
    ),
    Word::code(
        Edit::CallTheModel,
        "call-the-model",
        "y = model(x)  # or model.predict_on_batch(x), instead of model.predict(x)",
    ),
    Word::again(
        Edit::CallTheModelItself,
        "y = model(x)  # or model.predict_on_batch(x), instead of model.predict(x)",
    )
    .says("In Keras, call the model itself: predict builds a new pipeline on every call"),
    Word::code(
        Edit::PredictAll,
        "predict-all",
        "y = model.predict(examples)  # all of them, instead of one at a time",
    ),
    Word::code(
        Edit::FunctionOnce,
        "function-once",
        "step = tf.function(step_fn)  # before the loop, not inside it",
    ),
    Word::code(
        Edit::CompileModelOnce,
        "set-rate",
        "model.optimizer.learning_rate = rate  # instead of another model.compile(...)",
    )
    .says("Call model.compile once, before the loop: each call discards the compiled function"),
    Word::code(Edit::TensorArgument, "tensor-argument", "{}(x, tf.constant(n))  # not {}(x, n)"),
    Word::code(Edit::AnyShape, "reduce-retracing", "@tf.function(reduce_retracing=True)"),
    Word::code(
        Edit::DeclareShapes,
        "input-signature",
        "@tf.function(input_signature=[tf.TensorSpec([None, …], tf.float32)])",
    ),
    Word::code(
        Edit::PadShapes,
        "padded-batch",
        "ds = ds.padded_batch(batch_size, padded_shapes=shapes, drop_remainder=True)",
    ),
    Word::code(
        Edit::CompiledOnce,
        "xla-once",
        "step = tf.function(step_fn, jit_compile=True)",
    ),
    Word::code(
        Edit::ProfileLess,
        "profile-less",
        "options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=1)\n\
         tf.profiler.experimental.start(folder, options=options)",
    ),
];
