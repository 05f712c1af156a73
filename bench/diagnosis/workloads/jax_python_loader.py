"""A JAX regression; a Python loop assembles and normalises every batch, row by row, before the jitted step.

Planted: the loader is Python and runs in the training thread. Fix: index and normalise the whole batch at once.
"""
TRUTH = {
    "framework": "jax", "first_finding": "input-python",
    "also_right": ["input-bound", "python-overhead"],
    "same_fix": ["python-overhead"], "must_name": [], "healthy": False, "kind": "python",
    "fix": "X[chosen] and one vectorised normalisation instead of the loop over rows",
}
from _driver import Run

run = Run("jax", warm=5, steps=20)
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 128)).astype("float32")
Y = rng.standard_normal((20_000, 1)).astype("float32")


def load_batch(size=512):
    chosen = rng.integers(0, len(X), size)
    if run.fixed:
        rows = X[chosen]
        return (rows - rows.mean(1, keepdims=True)) / rows.std(1, keepdims=True), Y[chosen]
    rows, targets = [], []
    for index in chosen:
        row = X[index]
        rows.append((row - row.mean()) / row.std())
        targets.append(Y[index])
    return np.stack(rows), np.stack(targets)


def loss_fn(params, x, y):
    for w, b in params[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = params[-1]
    return jnp.mean((x @ w + b - y) ** 2)


@jax.jit
def update(params, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads), loss


keys = jax.random.split(jax.random.key(0), 3)
sizes = (128, 256, 256, 1)
params = [(jax.random.normal(k, (m, n)) / m**0.5, jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]
for i in run.loop():
    with run.mark(i):
        with run.part("input"):
            x, y = load_batch()
        params, loss = update(params, x, y)
        loss.block_until_ready()
