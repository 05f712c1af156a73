"""A JAX graph network whose update was never jitted.

Planted: each jnp call is dispatched from Python on its own. Fix: `@jax.jit`.
"""
TRUTH = {
    "framework": "jax", "first_finding": "eager-ops",
    "also_right": ["tiny-ops", "python-overhead"], "must_name": [], "healthy": False, "kind": "runtime",
    "fix": "@jax.jit on update",
}
from _driver import Run

run = Run("jax", warm=5, steps=15)
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
nodes = jnp.asarray(rng.standard_normal((128, 32)), jnp.float32)
links = jnp.asarray(rng.random((128, 128)) < 0.05, jnp.float32)
target = jnp.asarray(rng.standard_normal((128, 1)), jnp.float32)
params = [{"message": jnp.asarray(rng.standard_normal((32, 32)) * 0.1, jnp.float32),
           "update": jnp.asarray(rng.standard_normal((32, 32)) * 0.1, jnp.float32),
           "bias": jnp.zeros(32)} for _ in range(4)]


def loss_fn(params, nodes, links, target):
    hidden = nodes
    degree = jnp.sum(links, axis=1, keepdims=True) + 1.0
    for layer in params:
        message = links @ (hidden @ layer["message"]) / degree
        hidden = jnp.tanh(hidden @ layer["update"] + message + layer["bias"])
        hidden = hidden / (jnp.sqrt(jnp.mean(hidden**2, axis=1, keepdims=True)) + 1e-5)
    return jnp.mean((jnp.mean(hidden, axis=1, keepdims=True) - target) ** 2)


def update(params, nodes, links, target):
    loss, grads = jax.value_and_grad(loss_fn)(params, nodes, links, target)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss


if run.fixed:
    update = jax.jit(update)
for i in run.loop():
    with run.mark(i):
        params, loss = update(params, nodes, links, target)
        loss.block_until_ready()
