"""A JAX sequence model fed with batches as long as their longest sentence.

Planted: each new length compiles `train_step` again. Fix: pad to a multiple of 64.
"""
TRUTH = {
    "framework": "jax", "first_finding": "recompilation",
    "also_right": [], "must_name": ["train_step"], "healthy": False, "kind": "compile",
    "fix": "pad sequences to a multiple of 64 before jit",
}
from _driver import Run

run = Run("jax", warm=3, steps=12)
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
keys = jax.random.split(jax.random.key(1), 4)
params = {"embed": jax.random.normal(keys[0], (2000, 64)) * 0.1, "qk": jax.random.normal(keys[1], (64, 64)) * 0.1,
          "mlp": jax.random.normal(keys[2], (64, 256)) * 0.1, "out": jax.random.normal(keys[3], (256, 2000)) * 0.05}


def loss_fn(params, tokens, weight):
    hidden = params["embed"][tokens]
    scores = jnp.einsum("btd,de,bse->bts", hidden, params["qk"], hidden) / 8
    hidden = hidden + jax.nn.softmax(scores) @ hidden
    logits = jax.nn.gelu(hidden @ params["mlp"]) @ params["out"]
    nll = -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], -1)[..., 0]
    return jnp.sum(nll * weight) / jnp.sum(weight)


@jax.jit
def train_step(params, tokens, weight):
    loss, grads = jax.value_and_grad(loss_fn)(params, tokens, weight)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss


for i in run.loop():
    length = 20 + i
    width = 64 * -(-length // 64) if run.fixed else length
    tokens = np.zeros((8, width), np.int32)
    tokens[:, :length] = rng.integers(0, 2000, (8, length))
    weight = (np.arange(width) < length).astype("float32")[None].repeat(8, 0)
    with run.mark(i):
        params, loss = train_step(params, tokens, weight)
        loss.block_until_ready()
