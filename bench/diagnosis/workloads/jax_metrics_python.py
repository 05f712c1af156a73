"""JAX classification that counts its mistakes in a Python loop after each step. No markers.

Planted: per-example Python between the steps. Fix: `np.add.at` over the whole batch.
"""
TRUTH = {
    "framework": "jax", "first_finding": "python-overhead",
    "also_right": [], "must_name": [], "healthy": False, "kind": "python",
    "fix": "np.add.at(confusion, (labels, guesses), 1) instead of the loop over examples",
}
from _driver import Run

run = Run("jax", warm=5, steps=25)
run.marked = False
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(4)
x = rng.standard_normal((2048, 64)).astype("float32")
labels = rng.integers(0, 20, 2048)
params = {"w1": jnp.asarray(rng.standard_normal((64, 256)) * 0.1, jnp.float32),
          "w2": jnp.asarray(rng.standard_normal((256, 20)) * 0.1, jnp.float32)}


def loss_fn(params, x, labels):
    logits = jax.nn.relu(x @ params["w1"]) @ params["w2"]
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
    return -jnp.mean(picked), logits


@jax.jit
def train_step(params, x, labels):
    (loss, logits), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, x, labels)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), jnp.argmax(logits, 1)


mistakes = {}
confusion = np.zeros((20, 20), np.int64)
for i in run.loop():
    params, guesses = train_step(params, x, labels)
    guesses = np.asarray(guesses)
    with run.part("python"):
        if run.fixed:
            np.add.at(confusion, (labels, guesses), 1)
        else:
            for truth, guess in zip(labels, guesses):
                confusion[truth, guess] += 1
                if truth != guess:
                    mistakes[(int(truth), int(guess))] = mistakes.get((int(truth), int(guess)), 0) + 1
            worst = sorted(mistakes, key=mistakes.get)[-10:]
            recall = [confusion[k, k] / max(1, confusion[k].sum()) for k in range(20)]
