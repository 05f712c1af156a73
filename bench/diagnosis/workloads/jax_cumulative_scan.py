"""JAX survival model; the risk sets are summed by a sequential lax.scan of 20,000 tiny iterations.

Planted: one `while` loop is most of the step. Fix: `jnp.cumsum`.
"""
TRUTH = {
    "framework": "jax", "first_finding": "dominant-op",
    "also_right": ["tiny-ops"], "must_name": ["while"], "healthy": False, "kind": "compute",
    "fix": "jnp.cumsum(risk) instead of lax.scan",
}
from _driver import Run

run = Run("jax", warm=4, steps=15)
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(3)
patients = jnp.asarray(rng.standard_normal((20_000, 32)), jnp.float32)
died = jnp.asarray(rng.integers(0, 2, 20_000), jnp.float32)


def partial_likelihood(weights, x, event):
    score = jnp.tanh(x @ weights["w1"]) @ weights["w2"]
    risk = jnp.exp(score)
    if run.fixed:
        total = jnp.cumsum(risk)
    else:
        _, total = jax.lax.scan(lambda running, it: (running + it, running + it), 0.0, risk)
    return -jnp.mean(event * (score - jnp.log(total + 1e-6)))


@jax.jit
def fit_step(weights, x, event):
    loss, grads = jax.value_and_grad(partial_likelihood)(weights, x, event)
    return jax.tree.map(lambda w, g: w - 0.01 * g, weights, grads), loss


weights = {"w1": jnp.asarray(rng.standard_normal((32, 32)) * 0.1, jnp.float32),
           "w2": jnp.asarray(rng.standard_normal(32) * 0.1, jnp.float32)}
for i in run.loop():
    with run.mark(i):
        weights, loss = fit_step(weights, patients, died)
        loss.block_until_ready()
