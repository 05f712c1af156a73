"""A sentiment model in a custom loop; the reviews are cleaned, split and hashed in a serial map.

Planted: the text `map` runs one review at a time and nothing is fetched ahead; reproducible order was asked for
with tf.data's automatic rewrites off. Fix: `num_parallel_calls=tf.data.AUTOTUNE` and `prefetch`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-serial-map",
    "also_right": ["input-bound", "input-no-prefetch"], "must_name": ["Map"], "healthy": False, "kind": "input",
    "fix": "reviews.map(tokenise, num_parallel_calls=tf.data.AUTOTUNE).padded_batch(…).prefetch(tf.data.AUTOTUNE)",
}
from _driver import Run

run = Run("tensorflow", warm=5, steps=20)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(3)
words = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), rng.integers(3, 9))) for _ in range(500)]
texts = [" ".join(rng.choice(words, 150)) + "<br />Great!!" for _ in range(512)]
stars = rng.integers(0, 2, 512).astype("float32")


def tokenise(text, star):
    text = tf.strings.lower(text)
    text = tf.strings.regex_replace(text, "<br />", " ")
    text = tf.strings.regex_replace(text, "[^a-z ]", "")
    tokens = tf.strings.split(text)
    bigrams = tf.strings.join([tokens[:-1], tokens[1:]], " ")
    ids = tf.strings.to_hash_bucket_fast(tf.concat([tokens, bigrams], 0), 5000)
    return ids[:256], star


options = tf.data.Options()
options.autotune.enabled = False
options.experimental_optimization.map_parallelization = False
reviews = tf.data.Dataset.from_tensor_slices((texts, stars)).repeat().with_options(options)
reviews = reviews.map(tokenise, num_parallel_calls=tf.data.AUTOTUNE if run.fixed else None)
reviews = reviews.padded_batch(64, padded_shapes=([256], []))
if run.fixed:
    reviews = reviews.prefetch(tf.data.AUTOTUNE)

table = tf.Variable(tf.random.normal((5000, 32), stddev=0.05))
head = tf.Variable(tf.random.normal((32, 1), stddev=0.1))


@tf.function
def train_step(ids, star):
    with tf.GradientTape() as tape:
        pooled = tf.reduce_mean(tf.gather(table, ids), axis=1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(star[:, None], pooled @ head))
    for variable, gradient in zip((table, head), tape.gradient(loss, (table, head))):
        variable.assign_sub(0.1 * tf.convert_to_tensor(gradient))
    return loss


batches = iter(reviews)
for i in run.loop():
    with run.mark(i):
        with run.part("input"):
            ids, star = next(batches)
        loss = train_step(ids, star).numpy()
