"""Species from DNA reads; a serial map mutates each read and counts its k-mers; then shuffle, batch and prefetch.

Planted: one thread counts the k-mers while the model waits for most of the step.
Fix: `num_parallel_calls=tf.data.AUTOTUNE`.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-serial-map",
    "also_right": ["input-bound", "input-cpu-starved"], "must_name": ["Map"], "healthy": False, "kind": "input",
    "fix": "reads.map(count_kmers, num_parallel_calls=tf.data.AUTOTUNE)",
}
from _driver import Run

run = Run("tensorflow", warm=6, steps=20)
import numpy as np
import tensorflow as tf

tf.random.set_seed(31)
rng = np.random.default_rng(31)
LETTERS = np.array(list("ACGT"))
reads = ["".join(LETTERS[rng.integers(0, 4, 3000)]) for _ in range(300)]
species = rng.integers(0, 8, 300).astype("int32")
K = 5


def count_kmers(read, label):
    codes = tf.cast(tf.io.decode_raw(read, tf.uint8), tf.int32)
    bases = tf.where(codes == 65, 0, tf.where(codes == 67, 1, tf.where(codes == 71, 2, 3)))
    # Sequencing errors: one base in fifty is read wrong.
    wrong = tf.random.uniform(tf.shape(bases)) < 0.02
    bases = tf.where(wrong, tf.random.uniform(tf.shape(bases), 0, 4, tf.int32), bases)
    words = tf.reduce_sum(tf.signal.frame(bases, K, 1) * 4 ** tf.range(K), axis=1)
    counts = tf.math.bincount(words, minlength=4**K, maxlength=4**K, dtype=tf.float32)
    return tf.math.log1p(tf.ensure_shape(counts, (4**K,))), label


genomes = tf.data.Dataset.from_tensor_slices((reads, species)).repeat()
genomes = genomes.map(count_kmers, num_parallel_calls=tf.data.AUTOTUNE if run.fixed else None)
genomes = genomes.shuffle(200, seed=1).batch(64).prefetch(tf.data.AUTOTUNE)

w1 = tf.Variable(tf.random.normal((4**K, 128), stddev=0.03))
w2 = tf.Variable(tf.random.normal((128, 8), stddev=0.1))


@tf.function
def train_step(counts, label):
    with tf.GradientTape() as tape:
        logits = tf.nn.relu(counts @ w1) @ w2
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits))
    for variable, gradient in zip((w1, w2), tape.gradient(loss, (w1, w2))):
        variable.assign_sub(0.01 * gradient)
    return loss


batches = iter(genomes)
for i in run.loop():
    with run.mark(i):
        with run.part("input"):
            counts, label = next(batches)
        train_step(counts, label).numpy()
