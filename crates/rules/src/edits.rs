//! Edits that several rules advise, in the words of the framework that the run uses.

use analyses::Tables;
use analyses::run_info::frameworks;

/// Whether JAX computes. Where both left their names TensorFlow only feeds it: JAX's are those of
/// its compiled calls, TensorFlow's also those of tf.data.
pub fn is_jax(tables: &Tables) -> bool {
    frameworks(tables.trace()).contains(&"jax")
}

/// An edit in the words of the framework that the run uses.
pub fn in_framework<'a>(tables: &Tables, tensorflow: &'a str, jax: &'a str) -> &'a str {
    if is_jax(tables) { jax } else { tensorflow }
}

pub const IN_BFLOAT16: &str = "x = x.astype(jnp.bfloat16)";

/// Half the bits, where the hardware has units for that.
pub fn in_16_bits(tables: &Tables) -> &'static str {
    in_framework(tables, "keras.mixed_precision.set_global_policy(\"mixed_float16\")", IN_BFLOAT16)
}

/// Small ops made into larger ones by the compiler.
pub fn compiled_whole(tables: &Tables) -> &'static str {
    in_framework(tables, "@tf.function(jit_compile=True)", "@jax.jit  # around the whole step")
}

/// Saving now and then.
pub fn saved_seldom(tables: &Tables) -> &'static str {
    in_framework(
        tables,
        "if step % 1000 == 0:\n    checkpoint.save(path)",
        "if step % 1000 == 0:\n    save(state)",
    )
}

/// Saving that does not hold the step, and when not to use it.
pub fn saved_in_background(tables: &Tables) -> (&'static str, &'static str) {
    match is_jax(tables) {
        false => (
            "options = tf.train.CheckpointOptions(enable_async=True)\ncheckpoint.save(path, options=options)",
            " (not for Keras 3 models: TensorFlow raises a ValueError for them)",
        ),
        true => (
            "saver = orbax.checkpoint.AsyncCheckpointer(orbax.checkpoint.StandardCheckpointHandler())\nsaver.save(path, args=orbax.checkpoint.args.StandardSave(state))",
            "",
        ),
    }
}
