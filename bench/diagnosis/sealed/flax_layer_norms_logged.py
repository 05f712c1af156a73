"""A Flax network for tabular data; after each step the norm of every gradient and parameter goes to the log.

Planted: one small eager call and one read per array, between the steps. Fix: log every 50th step.
"""
TRUTH = {
    "framework": "jax", "first_finding": "python-overhead",
    "also_right": ["eager-ops", "sync-stall"], "same_fix": ["sync-stall"], "must_name": [], "healthy": False,
    "kind": "compute", "fix": "if step % 50 == 0: log_norms(...)", "change": "every-n-steps",
}
import json

from _driver import Run

run = Run("jax", warm=5, steps=30)
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
features = jnp.asarray(rng.standard_normal((16_384, 64)), jnp.float32)
target = jnp.asarray(rng.standard_normal((16_384, 1)), jnp.float32)


class TabularNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(256)(x)
        for _ in range(6):
            h = nn.LayerNorm()(x)
            x = x + nn.Dense(256)(nn.gelu(nn.Dense(256)(h)))
        return nn.Dense(1)(x)


net = TabularNet()
params = net.init(jax.random.key(0), features[:1])
optimizer = optax.adam(1e-3)
opt_state = optimizer.init(params)


@jax.jit
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((net.apply(p, x) - y) ** 2))(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss, grads


def log_norms(file, step, loss, params, grads):
    record = {"step": step, "loss": float(loss)}
    for (path, grad), param in zip(jax.tree_util.tree_leaves_with_path(grads), jax.tree.leaves(params)):
        name = jax.tree_util.keystr(path)
        record[f"grad/{name}"] = float(jnp.linalg.norm(grad))
        record[f"param/{name}"] = float(jnp.linalg.norm(param))
    file.write(json.dumps(record) + "\n")


log = open(run.scratch / "norms.jsonl", "w")
for step in run.loop():
    first = step * 192 % 15_360
    x, y = features[first:first + 192], target[first:first + 192]
    with run.mark(step):
        params, opt_state, loss, grads = train_step(params, opt_state, x, y)
        loss.block_until_ready()
    if not run.fixed or step % 50 == 0:
        with run.part("python"):
            log_norms(log, step, loss, params, grads)
