"""JAX training that reads the loss back after every step, before it asks for the next batch.

Planted: `float(loss)` makes Python wait for each step, so that training and the wait for data take turns.
Fix: read it every 20th step.
"""
TRUTH = {
    "framework": "jax", "first_finding": "sync-stall",
    "also_right": ["python-overhead", "input-python"], "must_name": [], "healthy": False, "kind": "compute",
    "fix": "if step % 20 == 0: history.append(float(loss))",
}
import time

from _driver import Run

run = Run("jax", warm=5, steps=40)
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
samples = rng.standard_normal((4096, 384), np.float32)


def loss_fn(params, x):
    hidden = x
    for w in params:
        hidden = jnp.tanh(hidden @ w)
    return jnp.mean((hidden - x) ** 2)


@jax.jit
def train_step(params, x):
    loss, grads = jax.value_and_grad(loss_fn)(params, x)
    return [p - 0.01 * g for p, g in zip(params, grads)], loss


def next_batch():
    time.sleep(0.006)  # the feature store's answer
    return samples[rng.integers(0, len(samples), 128)]


params = [jnp.asarray(rng.standard_normal((384, 384)) * 0.05, jnp.float32) for _ in range(4)]
history, loss = [], None
for step in run.loop(sync=lambda: jax.block_until_ready(params)):
    with run.mark(step):
        x = next_batch()
        params, loss = train_step(params, x)
        if not run.fixed or step % 20 == 0:
            with run.part("sync"):
                history.append(float(loss))
