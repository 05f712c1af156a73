//! Every edit that the program can print, in the words of the framework that the run uses.
//!
//! A rule cannot print any other: [`crate::Fix::edit`] takes only what is made here. The list is
//! written to `bench/edits/printed.json`, and `bench/edits/printed` runs each of them with today's
//! frameworks. An edit that is known to fail somewhere says when not to use it.

use std::fmt::Display;

use analyses::Tables;
use analyses::run_info::frameworks;

use crate::Fix;

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
    WORKERS_TORCH = "workers-torch": "loader = DataLoader(data, batch_size, num_workers=4, persistent_workers=True)";
    MORE_WORKERS_TORCH = "more-workers-torch": "loader = DataLoader(data, batch_size, num_workers=8, persistent_workers=True)";
    PIN_MEMORY_TORCH = "pin-memory-torch": "loader = DataLoader(data, batch_size, num_workers=4, pin_memory=True)\nx = x.to(device, non_blocking=True)";
    COMPILE_TORCH = "compile-torch": "model = torch.compile(model)";
    DYNAMIC_TORCH = "dynamic-torch": "model = torch.compile(model, dynamic=True)";
    PAD_TORCH = "pad-torch": "x = torch.nn.functional.pad(x, (0, 0, 0, LENGTH - x.shape[0]))  # and a mask";
    AUTOCAST_TORCH = "autocast-torch": "with torch.autocast(device_type=device.type, dtype=torch.bfloat16):\n    loss = loss_of(model(x), y)";
    TF32_TORCH = "tf32-torch": "torch.set_float32_matmul_precision(\"high\")";
    RECOMPUTE_TORCH = "recompute-torch": "y = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)";
    FLOAT32_TORCH = "float32-torch": "model, x = model.float(), x.float()";
    FEWER_THREADS_TORCH = "fewer-threads-torch": "torch.set_num_threads({})";
    SAVE_SELDOM_TORCH = "save-seldom-torch": "if step % 1000 == 0:\n    torch.save(model.state_dict(), path)";
    BATCH_OF_TORCH = "batch-of-torch": "loader = DataLoader(data, batch_size={})";
    SPLIT_REQUESTS_TORCH = "split-requests-torch": "for part in torch.split(x, MAX): serve(part)  # at most MAX rows at a time";
    PROFILE_LESS_TORCH = "profile-less-torch": "torch.profiler.profile(record_shapes=False, profile_memory=False, with_stack=False)";
    PROFILE_LESS_JAX = "profile-less-jax": "options = jax.profiler.ProfileOptions()\noptions.python_tracer_level = 0\njax.profiler.start_trace(folder, profiler_options=options)";
}

/// Whether JAX computes. Where both left their names TensorFlow only feeds it: JAX's are those of
/// its compiled calls, TensorFlow's also those of tf.data.
pub fn is_jax(tables: &Tables) -> bool {
    frameworks(tables.trace()).contains(&"jax")
}

/// Whether PyTorch computes, and no other framework left its names.
pub fn is_torch(tables: &Tables) -> bool {
    frameworks(tables.trace()) == ["torch"]
}

/// Edits that are plain Python, or strobe's own: right for every framework.
const OF_ALL: [Edit; 4] = [TIMES_LARGER_BATCH, KEEP_NUMBERS, DROP, STROBE_RUN];

/// What PyTorch has in place of others' edits, and what to call it.
const IN_TORCH: [(&[Edit], &str, Edit); 12] = [
    (
        &[
            PARALLEL_MAP,
            PARALLEL_AND_AHEAD,
            PREFETCH,
            PARALLEL_READS,
            FROM_ARRAYS,
            IN_TENSORFLOW_OPS,
        ],
        "Make batches in worker processes, ahead of the step",
        WORKERS_TORCH,
    ),
    (
        &[TO_DEVICE_AHEAD],
        "Copy batches from pinned memory, while the device computes",
        PIN_MEMORY_TORCH,
    ),
    (&[XLA, TF_FUNCTION], "Compile the model", COMPILE_TORCH),
    (&[MIXED_FLOAT16, MIXED_BFLOAT16], "Compute in 16 bits", AUTOCAST_TORCH),
    (&[TF32], "Let matrix products use TF32", TF32_TORCH),
    (&[RECOMPUTE], "Compute activations again instead of keeping them", RECOMPUTE_TORCH),
    (&[FLOAT32], "Compute in 32 bits", FLOAT32_TORCH),
    (&[FEWER_THREADS], "Use as many threads as there are cores", FEWER_THREADS_TORCH),
    (&[SAVE_SELDOM], "Save less often", SAVE_SELDOM_TORCH),
    (&[BATCH_OF], "Use a larger batch", BATCH_OF_TORCH),
    (&[SPLIT_REQUESTS], "Split large requests", SPLIT_REQUESTS_TORCH),
    (&[PROFILE_LESS], "Record less", PROFILE_LESS_TORCH),
];

impl Edit {
    /// What stands in place of `{}` in an edit as it was printed; `None`: it is another edit.
    fn value_in<'a>(&self, printed: &'a str) -> Option<&'a str> {
        match self.text.split_once("{}") {
            None => (self.text == printed).then_some(""),
            // The same value may stand there twice.
            Some((before, _)) => {
                let rest = printed.strip_prefix(before)?;
                let n =
                    rest.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(rest.len());
                let value = &rest[..n];
                (self.text.replace("{}", value) == printed).then_some(value)
            }
        }
    }
}

/// Puts the edits of a finding into PyTorch's words, and drops those that it has no words for: of
/// another framework's advice nothing is left.
///
/// What is compiled already is not to be compiled again.
pub fn in_torch(fixes: &mut Vec<Fix>, is_compiled: bool) {
    fixes.retain_mut(|fix| {
        let Some(printed) = &fix.edit else { return !names_another_framework(&fix.text) };
        let ours = ALL.iter().filter(|it| it.key.ends_with("-torch"));
        if ours.chain(&OF_ALL).any(|it| it.value_in(printed).is_some()) {
            return !names_another_framework(&fix.text);
        }
        let found = IN_TORCH.iter().find_map(|(theirs, text, ours)| {
            let value = theirs.iter().find_map(|it| it.value_in(printed))?;
            Some((*text, ours.with(value)))
        });
        let Some((text, edit)) = found else { return false };
        if is_compiled && COMPILE_TORCH.value_in(&edit.0).is_some() {
            return false;
        }
        fix.text = text.to_owned();
        fix.edit = Some(edit.into());
        (fix.site, fix.diff) = (None, None);
        true
    });
    // Several edits of others can be one of PyTorch's.
    let mut met: Vec<String> = Vec::new();
    fixes.retain(|fix| match &fix.edit {
        Some(edit) if met.contains(edit) => false,
        Some(edit) => {
            met.push(edit.clone());
            true
        }
        None => true,
    });
}

fn names_another_framework(text: &str) -> bool {
    ["TensorFlow", "Keras", "tf.", "XLA", "JAX", "jax.", "jit_compile"]
        .iter()
        .any(|it| text.contains(it))
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
    use crate::{Change, Fix};

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

    #[test]
    fn a_run_of_pytorch_gets_its_own_edits_or_none() {
        let mut fixes = vec![
            Fix::new(Change::Prefetch, "Prefetch").edit(super::PREFETCH),
            Fix::new(Change::ParallelMap, "Map in parallel").edit(super::PARALLEL_AND_AHEAD),
            Fix::new(Change::LargerBatch, "Use 4 times as many")
                .edit(super::TIMES_LARGER_BATCH.with(4)),
            Fix::new(Change::LargerBatch, "A batch of 64").edit(super::BATCH_OF.with(64)),
            Fix::new(Change::StepsPerCall, "Run several").edit(super::STEPS_PER_EXECUTION),
            Fix::new(Change::LessMemory, "Let tf.data buffer less"),
            Fix::new(Change::FillDevice, "Give each launch more work"),
        ];
        let mut compiled = vec![Fix::new(Change::Fuse, "Compile").edit(super::XLA)];
        super::in_torch(&mut compiled, true);
        assert_eq!(compiled, []);
        super::in_torch(&mut fixes, false);
        let left: Vec<_> =
            fixes.iter().map(|it| (it.text.as_str(), it.edit.as_deref().unwrap_or(""))).collect();
        assert_eq!(
            left,
            [
                ("Make batches in worker processes, ahead of the step", super::WORKERS_TORCH.text),
                ("Use 4 times as many", "batch_size = batch_size * 4"),
                ("Use a larger batch", "loader = DataLoader(data, batch_size=64)"),
                ("Give each launch more work", ""),
            ]
        );
    }

    /// Whatever a rule prints has a counterpart, or is known to have none.
    #[test]
    fn no_edit_of_another_framework_is_left() {
        for edit in ALL.iter().filter(|it| !it.key.ends_with("-torch")) {
            let mut fixes = vec![Fix::new(Change::Capture, "It").edit(edit.with(3))];
            super::in_torch(&mut fixes, false);
            for fix in fixes {
                let text = fix.edit.unwrap_or_default();
                let foreign = ["tf.", "keras", "jax", "jnp", "jit_compile", "model.compile"];
                assert!(!foreign.iter().any(|it| text.contains(it)), "{}: {text}", edit.key);
            }
        }
    }

    fn quoted(text: &str) -> String {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("\"{text}\"")
    }
}
