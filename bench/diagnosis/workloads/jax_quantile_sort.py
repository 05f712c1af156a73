"""A JAX tabular model that scales its features by exact quantiles, found anew from the whole reference table each step.

Planted: one op, the sort behind jnp.quantile, is most of the step. Fix: find the quantiles once, before the loop.
"""
TRUTH = {
    "framework": "jax", "first_finding": "dominant-op",
    "also_right": [], "must_name": ["sort"], "healthy": False, "kind": "compute",
    "fix": "low, high = jnp.quantile(...) once before the loop, passed to train_step",
}
from _driver import Run

run = Run("jax", warm=4, steps=15)
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(3)
reference = jnp.asarray(rng.standard_normal((6000, 32)), jnp.float32)
batch = jnp.asarray(rng.standard_normal((512, 32)), jnp.float32)
target = jnp.asarray(rng.standard_normal(512), jnp.float32)


def quartiles(reference):
    return jnp.quantile(reference, 0.25, axis=0), jnp.quantile(reference, 0.75, axis=0)


def loss_fn(weights, x, y, low, high):
    x = (x - low) / (high - low)
    hidden = jax.nn.relu(x @ weights["w1"]) @ weights["w2"]
    return jnp.mean((jnp.tanh(hidden) @ weights["w3"] - y) ** 2)


@jax.jit
def train_step(weights, x, y, table, scale):
    low, high = scale if run.fixed else quartiles(table)
    loss, grads = jax.value_and_grad(loss_fn)(weights, x, y, low, high)
    return jax.tree.map(lambda w, g: w - 0.01 * g, weights, grads), loss


weights = {"w1": jnp.asarray(rng.standard_normal((32, 256)) * 0.1, jnp.float32),
           "w2": jnp.asarray(rng.standard_normal((256, 256)) * 0.1, jnp.float32),
           "w3": jnp.asarray(rng.standard_normal(256) * 0.1, jnp.float32)}
scale = quartiles(reference)
for i in run.loop():
    with run.mark(i):
        weights, loss = train_step(weights, batch, target, reference, scale)
        loss.block_until_ready()
