//! Every edit that the program can print, in the words of the framework that the run uses.
//!
//! A rule cannot print any other: [`crate::Fix::edit`] takes only what is made here. The list is
//! written to `bench/edits/printed.json`, and `bench/edits/printed` runs each of them with today's
//! frameworks. An edit that is known to fail somewhere says when not to use it.

use std::fmt::Display;

use analyses::Tables;
use analyses::run_info::frameworks;

/// Code to write, by a stable key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit {
    pub key: &'static str,
    /// With `{}` where a number or a name of the run comes in.
    pub text: &'static str,
}

/// An edit as it is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written(String);

impl Edit {
    /// With a number or a name of the run.
    pub fn with(self, value: impl Display) -> Written {
        Written(self.text.replace("{}", &value.to_string()))
    }
}

impl From<Edit> for Written {
    fn from(edit: Edit) -> Written {
        Written(edit.text.to_owned())
    }
}

impl From<Written> for String {
    fn from(edit: Written) -> String {
        edit.0
    }
}

/// Declares the edits, each with its stable key.
macro_rules! edits {
    ($($name:ident = $key:literal: $text:literal;)*) => {
        $(pub const $name: Edit = Edit { key: $key, text: $text };)*

        /// All of them.
        pub const ALL: &[Edit] = &[$($name),*];
    };
}

edits! {
    PARALLEL_MAP = "parallel-map": "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\nds = ds.batch(n).prefetch(tf.data.AUTOTUNE)";
    PARALLEL_AND_AHEAD = "parallel-and-ahead": "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\nds = ds.prefetch(tf.data.AUTOTUNE)";
    PREFETCH = "prefetch": "ds = ds.prefetch(tf.data.AUTOTUNE)";
    PARALLEL_READS = "parallel-reads": "ds = files.interleave(tf.data.TFRecordDataset,\n                      num_parallel_calls=tf.data.AUTOTUNE)\nds = ds.prefetch(tf.data.AUTOTUNE)";
    SHUFFLE_FIRST = "shuffle-first": "ds = ds.shuffle(n).map(f)  # not ds.map(f).shuffle(n)";
    CACHE = "cache": "ds = ds.map(f).cache()";
    CACHE_AND_REPEAT = "cache-and-repeat": "ds = ds.map(f).cache().repeat()";
    FROM_ARRAYS = "from-arrays": "ds = tf.data.Dataset.from_tensor_slices(arrays)\nds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)";
    IN_TENSORFLOW_OPS = "in-tensorflow-ops": "ds = ds.map(f_in_tensorflow_ops, num_parallel_calls=tf.data.AUTOTUNE)";
    RAM_BUDGET = "ram-budget": "options = tf.data.Options()\noptions.autotune.ram_budget = 1 << 30\nds = ds.with_options(options)";
    BATCH_OF = "batch-of": "ds = ds.batch({})";
    TIMES_LARGER_BATCH = "times-larger-batch": "batch_size = batch_size * {}";
    STEPS_PER_EXECUTION = "steps-per-execution": "model.compile(..., steps_per_execution=10)";
    SCANNED_STEPS = "scanned-steps": "state, losses = jax.lax.scan(train_step, state, batches)";
    TF_FUNCTION = "tf-function": "@tf.function\ndef train_step(...):";
    JAX_JIT = "jax-jit": "@jax.jit\ndef train_step(...):";
    XLA = "xla": "@tf.function(jit_compile=True)";
    JIT_WHOLE_STEP = "jit-whole-step": "@jax.jit  # around the whole step";
    SAVE_SELDOM = "save-seldom": "if step % 1000 == 0:\n    checkpoint.save(path)";
    SAVE_SELDOM_JAX = "save-seldom-jax": "if step % 1000 == 0:\n    save(state)";
    SAVE_ASYNC = "save-async": "options = tf.train.CheckpointOptions(enable_async=True)\ncheckpoint.save(path, options=options)";
    SAVE_ASYNC_JAX = "save-async-jax": "saver = orbax.checkpoint.AsyncCheckpointer(orbax.checkpoint.StandardCheckpointHandler())\nsaver.save(path, args=orbax.checkpoint.args.StandardSave(state))";
    SUMMARY_SELDOM = "summary-seldom": "if step % 100 == 0:\n    tf.summary.scalar(\"loss\", loss, step=step)";
    KEEP_NUMBERS = "keep-numbers": "losses.append(float(loss))";
    DROP = "drop": "del outputs, grads";
    RECOMPUTE = "recompute": "block = tf.recompute_grad(block)";
    RECOMPUTE_JAX = "recompute-jax": "block = jax.checkpoint(block)";
    MIXED_FLOAT16 = "mixed-float16": "keras.mixed_precision.set_global_policy(\"mixed_float16\")";
    MIXED_BFLOAT16 = "mixed-bfloat16": "keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")";
    BFLOAT16_JAX = "bfloat16-jax": "x = x.astype(jnp.bfloat16)";
    TF32 = "tf32": "tf.config.experimental.enable_tensor_float_32_execution(True)";
    TF32_JAX = "tf32-jax": "jax.config.update(\"jax_default_matmul_precision\", \"tensorfloat32\")";
    FEWER_THREADS = "fewer-threads": "tf.config.threading.set_intra_op_parallelism_threads({})";
    TO_DEVICE_AHEAD = "to-device-ahead": "ds = ds.apply(tf.data.experimental.prefetch_to_device(\"/gpu:0\"))";
    TO_DEVICE_AHEAD_JAX = "to-device-ahead-jax": "following = jax.device_put(next(batches))  # before this step's result is read";
    SPLIT_REQUESTS = "split-requests": "for part in tf.split(x, parts): serve(part)  # at most MAX rows at a time";
    SPLIT_REQUESTS_JAX = "split-requests-jax": "for part in jnp.array_split(x, parts): serve(part)  # at most MAX rows each";
    CALL_THE_MODEL = "call-the-model": "y = model(x)  # or model.predict_on_batch(x), instead of model.predict(x)";
    FUNCTION_ONCE = "function-once": "step = tf.function(step_fn)  # before the loop, not inside it";
    TENSOR_ARGUMENT = "tensor-argument": "{}(x, tf.constant(n))  # not {}(x, n)";
    REDUCE_RETRACING = "reduce-retracing": "@tf.function(reduce_retracing=True)";
    INPUT_SIGNATURE = "input-signature": "@tf.function(input_signature=[tf.TensorSpec([None, …], tf.float32)])";
    DROP_REMAINDER = "drop-remainder": "ds = ds.batch(batch_size, drop_remainder=True)";
    PADDED_BATCH = "padded-batch": "ds = ds.padded_batch(batch_size, padded_shapes=shapes, drop_remainder=True)";
    PAD_JAX = "pad-jax": "x = jnp.pad(x, ((0, BATCH - len(x)), (0, 0)))  # one shape, and a mask";
    JIT_ONCE = "jit-once": "step = jax.jit(step_fn)  # not jax.jit(lambda …) in the loop";
    ARRAY_ARGUMENT = "array-argument": "step(params, x, jnp.asarray(lr))  # not in static_argnums";
    XLA_ONCE = "xla-once": "step = tf.function(step_fn, jit_compile=True)";
    SET_RATE = "set-rate": "model.optimizer.learning_rate = rate  # instead of another model.compile(...)";
    PREDICT_ALL = "predict-all": "y = model.predict(examples)  # all of them, instead of one at a time";
    VMAP = "vmap": "gradients = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))";
    FLOAT32 = "float32": "keras.config.set_floatx(\"float32\")\nx = x.astype(\"float32\")";
    FLOAT32_JAX = "float32-jax": "jax.config.update(\"jax_enable_x64\", False)";
    SOME_ROWS = "some-rows": "table_optimizer = keras.optimizers.Adagrad(0.01)\ntable_optimizer.apply([table_gradient], [embedding.embeddings])";
    STROBE_RUN = "strobe-run": "strobe run -- python train.py";
    PROFILE_LESS = "profile-less": "options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=1)\ntf.profiler.experimental.start(folder, options=options)";
    PROFILE_LESS_JAX = "profile-less-jax": "options = jax.profiler.ProfileOptions()\noptions.python_tracer_level = 0\njax.profiler.start_trace(folder, profiler_options=options)";
}

/// Whether JAX computes. Where both left their names TensorFlow only feeds it: JAX's are those of
/// its compiled calls, TensorFlow's also those of tf.data.
pub fn is_jax(tables: &Tables) -> bool {
    frameworks(tables.trace()).contains(&"jax")
}

/// An edit in the words of the framework that the run uses.
pub fn in_framework(tables: &Tables, tensorflow: Edit, jax: Edit) -> Edit {
    if is_jax(tables) { jax } else { tensorflow }
}

/// Half the bits, where the hardware has units for that.
pub fn in_16_bits(tables: &Tables) -> Edit {
    in_framework(tables, MIXED_FLOAT16, BFLOAT16_JAX)
}

/// Small ops made into larger ones by the compiler.
pub fn compiled_whole(tables: &Tables) -> Edit {
    in_framework(tables, XLA, JIT_WHOLE_STEP)
}

/// Saving now and then.
pub fn saved_seldom(tables: &Tables) -> Edit {
    in_framework(tables, SAVE_SELDOM, SAVE_SELDOM_JAX)
}

/// Saving that does not hold the step, and when not to use it.
pub fn saved_in_background(tables: &Tables) -> (Edit, &'static str) {
    match is_jax(tables) {
        false => (SAVE_ASYNC, " (not for Keras 3 models: TensorFlow raises a ValueError for them)"),
        true => (SAVE_ASYNC_JAX, ""),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::ALL;

    /// `UPDATE=1 cargo test` writes it anew; `bench/edits/printed` runs all of them.
    #[test]
    fn the_list_of_edits_is_fresh() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/edits/printed.json");
        let edits: BTreeMap<&str, &str> = ALL.iter().map(|it| (it.key, it.text)).collect();
        assert_eq!(edits.len(), ALL.len(), "a key is used twice");
        let lines: Vec<String> =
            edits.iter().map(|(key, text)| format!("{}: {}", quoted(key), quoted(text))).collect();
        let fresh = format!("{{\n{}\n}}\n", lines.join(",\n"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            kept, fresh,
            "run `UPDATE=1 cargo test -p rules edits`, then bench/edits/printed"
        );
    }

    fn quoted(text: &str) -> String {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("\"{text}\"")
    }
}
