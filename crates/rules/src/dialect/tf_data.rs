//! What TensorFlow does for others, too: input pipelines and event files.

use super::{Edit, Word};

pub static WORDS: &[Word] = &[
    Word::code(
        Edit::ParallelMap,
        "parallel-map",
        "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\nds = ds.batch(n).prefetch(tf.data.AUTOTUNE)",
    ),
    Word::code(
        Edit::ParallelAndAhead,
        "parallel-and-ahead",
        "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\nds = ds.prefetch(tf.data.AUTOTUNE)",
    ),
    Word::code(Edit::Prefetch, "prefetch", "ds = ds.prefetch(tf.data.AUTOTUNE)"),
    Word::code(
        Edit::ParallelReads,
        "parallel-reads",
        "ds = files.interleave(tf.data.TFRecordDataset,\n                      \
         num_parallel_calls=tf.data.AUTOTUNE)\nds = ds.prefetch(tf.data.AUTOTUNE)",
    ),
    Word::code(
        Edit::ShuffleFirst,
        "shuffle-first",
        "ds = ds.shuffle(n).map(f)  # not ds.map(f).shuffle(n)",
    ),
    Word::code(Edit::Cache, "cache", "ds = ds.map(f).cache()"),
    Word::code(Edit::CacheAndRepeat, "cache-and-repeat", "ds = ds.map(f).cache().repeat()"),
    Word::code(
        Edit::FromArrays,
        "from-arrays",
        "ds = tf.data.Dataset.from_tensor_slices(arrays)\nds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)",
    )
    .says("Replace the generator with arrays or files that TensorFlow reads itself"),
    Word::code(
        Edit::NativeInput,
        "in-tensorflow-ops",
        "ds = ds.map(f_in_tensorflow_ops, num_parallel_calls=tf.data.AUTOTUNE)",
    )
    .says("Replace the Python function with TensorFlow ops"),
    Word::code(
        Edit::LessBuffering,
        "ram-budget",
        "options = tf.data.Options()\noptions.autotune.ram_budget = 1 << 30\nds = ds.with_options(options)",
    )
    .says("Let tf.data buffer less"),
    Word::code(Edit::BatchOf, "batch-of", "ds = ds.batch({})"),
    Word::code(
        Edit::EqualBatches,
        "drop-remainder",
        "ds = ds.batch(batch_size, drop_remainder=True)",
    ),
    Word::code(
        Edit::SummarySeldom,
        "summary-seldom",
        "if step % 100 == 0:\n    tf.summary.scalar(\"loss\", loss, step=step)",
    ),
];
