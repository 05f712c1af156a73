"""A deep JAX autoencoder: the gradient is jitted, the optax update and apply_updates are called after it as they are.

Planted: clipping, AdamW and the update of every array are dispatched from Python op by op.
Fix: jit the whole step.
"""
TRUTH = {
    "framework": "jax", "first_finding": "eager-ops",
    "also_right": ["tiny-ops", "python-overhead"], "must_name": [], "healthy": False, "kind": "runtime",
    "fix": "@jax.jit on train_step, with optimizer.update and optax.apply_updates inside", "change": "compile-step",
}
from _driver import Run

run = Run("jax", warm=4, steps=20)
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
x = jnp.asarray(rng.standard_normal((512, 256)), jnp.float32)
sizes = (256, 192, 128, 64, 16, 64, 128, 192, 256)
keys = jax.random.split(jax.random.key(0), len(sizes))
params = [{"w": jax.random.normal(k, (m, n)) / m**0.5, "b": jnp.zeros(n)} for k, m, n in zip(keys, sizes, sizes[1:])]
schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 10_000)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
opt_state = optimizer.init(params)


def loss_fn(params, x):
    h = x
    for layer in params[:-1]:
        h = jax.nn.silu(h @ layer["w"] + layer["b"])
    return jnp.mean((h @ params[-1]["w"] + params[-1]["b"] - x) ** 2)


grad_fn = jax.jit(jax.value_and_grad(loss_fn))


def train_step(params, opt_state, x):
    loss, grads = grad_fn(params, x)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


if run.fixed:
    train_step = jax.jit(train_step)
for i in run.loop(sync=lambda: jax.block_until_ready(params)):
    params, opt_state, loss = train_step(params, opt_state, x)
    if i % 10 == 0:
        print(i, float(loss))
