"""Healthy: a neural operator for heat flow in plain JAX and optax, batches of one size, no markers."""
TRUTH = {"framework": "jax", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("jax", warm=4, steps=20)
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
start = jnp.asarray(rng.standard_normal((2048, 256, 1)), jnp.float32)
end = jnp.asarray(rng.standard_normal((2048, 256, 1)), jnp.float32)
keys = iter(jax.random.split(jax.random.key(0), 16))
params = {"lift": jax.random.normal(next(keys), (1, 128)),
          "mix": [jax.random.normal(next(keys), (128, 128)) * 0.09 for _ in range(4)],
          "space": [jax.random.normal(next(keys), (256, 256)) * 0.05 for _ in range(4)],
          "head": jax.random.normal(next(keys), (128, 1)) * 0.1}
optimizer = optax.adam(1e-3)
opt_state = optimizer.init(params)


@jax.jit
def train_step(params, opt_state, x, y):
    def loss_fn(params):
        h = x @ params["lift"]
        for mix, space in zip(params["mix"], params["space"]):
            h = jax.nn.gelu(h @ mix + jnp.einsum("bsc,st->btc", h, space))
        return jnp.mean((h @ params["head"] - y) ** 2)
    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


for i in run.loop(sync=lambda: jax.block_until_ready(params)):
    first = i * 32 % 2048
    params, opt_state, loss = train_step(params, opt_state, start[first:first + 32], end[first:first + 32])
    if i % 10 == 0:
        print(i, float(loss))
