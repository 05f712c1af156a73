"""JAX policy gradient; the update is a lambda handed to jax.jit inside the loop. No markers.

Planted: a new function object in every step, so jit compiles in every step. Fix: one jitted function, the return
passed as an argument.
"""
TRUTH = {
    "framework": "jax", "first_finding": "recompilation",
    "also_right": [], "must_name": [], "healthy": False, "kind": "compile",
    "fix": "define the jitted update once and pass `advantage` as an argument",
}
from _driver import Run

run = Run("jax", warm=3, steps=15)
run.marked = False
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(5)
w1 = jnp.asarray(rng.standard_normal((32, 256)), jnp.float32) * 0.1
w2 = jnp.asarray(rng.standard_normal((256, 6)), jnp.float32) * 0.1


def policy_loss(weights, states, actions, advantage):
    logits = jnp.tanh(states @ weights[0]) @ weights[1]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), actions[:, None], 1)[:, 0]
    return -jnp.mean(chosen * advantage)


@jax.jit
def update(weights, states, actions, advantage):
    grads = jax.grad(policy_loss)(weights, states, actions, advantage)
    return jax.tree.map(lambda w, g: w - 0.01 * g, weights, grads)


weights = (w1, w2)
for episode in run.loop():
    states = rng.standard_normal((1024, 32)).astype("float32")
    actions = rng.integers(0, 6, 1024)
    advantage = float(rng.standard_normal())
    if run.fixed:
        weights = update(weights, states, actions, advantage)
    else:
        step = jax.jit(lambda w, s, a: jax.tree.map(
            lambda p, g: p - 0.01 * g, w, jax.grad(policy_loss)(w, s, a, advantage)))
        weights = step(weights, states, actions)
    jax.block_until_ready(weights)
