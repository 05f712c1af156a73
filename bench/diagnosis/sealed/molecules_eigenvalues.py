"""Atomisation energies from the sorted eigenvalues of Coulomb matrices, in a custom loop.

Planted: the eigenvalues of the same molecules are computed again in every epoch, on all cores, in a parallel map.
Fix: `.cache()` after the map.
"""
TRUTH = {
    "framework": "tensorflow", "first_finding": "input-cpu-starved",
    "also_right": ["input-bound"], "must_name": ["Map"], "healthy": False, "kind": "input",
    "fix": "molecules.map(coulomb_spectrum, tf.data.AUTOTUNE).cache()", "change": "cache",
}
from _driver import Run

run = Run("tensorflow", warm=8, steps=30)
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
ATOMS = 40
charges = rng.choice([1, 6, 7, 8], (320, ATOMS)).astype("float32")
positions = (rng.standard_normal((320, ATOMS, 3)) * 4).astype("float32")
energy = rng.standard_normal(320).astype("float32")


def coulomb_spectrum(charge, position, target):
    distance = tf.norm(position[:, None] - position[None], axis=-1) + tf.eye(ATOMS)
    coulomb = charge[:, None] * charge[None] / distance
    coulomb = tf.linalg.set_diag(coulomb, 0.5 * charge**2.4)
    spectrum = tf.linalg.eigvalsh(coulomb)
    return tf.sort(tf.abs(spectrum), direction="DESCENDING"), target


molecules = tf.data.Dataset.from_tensor_slices((charges, positions, energy))
molecules = molecules.map(coulomb_spectrum, num_parallel_calls=tf.data.AUTOTUNE)
if run.fixed:
    molecules = molecules.cache()
molecules = molecules.shuffle(320).repeat().batch(64).prefetch(tf.data.AUTOTUNE)

sizes = (ATOMS, 512, 512, 512, 1)
weights = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in zip(sizes, sizes[1:])]


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        for weight in weights[:-1]:
            x = tf.nn.swish(x @ weight)
        loss = tf.reduce_mean(tf.square(tf.squeeze(x @ weights[-1], 1) - y))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(1e-4 * gradient)
    return loss


batches = iter(molecules)
for step in run.loop():
    with run.mark(step):
        with run.part("input"):
            x, y = next(batches)
        train_step(x, y)
