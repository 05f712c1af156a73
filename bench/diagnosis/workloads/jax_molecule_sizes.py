"""A JAX force field trained on molecules of some 35 atoms, each batch as wide as its largest molecule. No markers.

Planted: each new number of atoms compiles `train_step` again; some come again, so not every step pays.
Fix: pad to 48 or 64 atoms, the padding being masked anyway.
"""
TRUTH = {
    "framework": "jax", "first_finding": "recompilation",
    "also_right": [], "must_name": ["train_step"], "healthy": False, "kind": "compile",
    "fix": "pad molecules to a multiple of 16 atoms before jit",
}
from _driver import Run

run = Run("jax", warm=8, steps=24)
run.marked = False
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(111)
BATCH = 40
params = {"atom": jnp.asarray(rng.standard_normal((10, 24)) * 0.3, jnp.float32),
          "filter": jnp.asarray(rng.standard_normal((16, 24)) * 0.2, jnp.float32),
          "mix": jnp.asarray(rng.standard_normal((24, 24)) * 0.2, jnp.float32),
          "energy": jnp.asarray(rng.standard_normal(24) * 0.2, jnp.float32)}
centres = jnp.linspace(0.0, 6.0, 16)


def energy(params, kinds, places, there):
    apart = jnp.sqrt(jnp.sum((places[:, :, None] - places[:, None]) ** 2, -1) + 1e-6)
    near = jnp.exp(-2.0 * (apart[..., None] - centres) ** 2) @ params["filter"]
    near = near * (there[:, :, None] * there[:, None])[..., None]
    hidden = params["atom"][kinds]
    hidden = hidden + jax.nn.silu(jnp.einsum("bijf,bjf->bif", near, hidden) @ params["mix"])
    return jnp.sum((hidden @ params["energy"]) * there, axis=1)


@jax.jit
def train_step(params, kinds, places, there, target):
    def loss_fn(params):
        return jnp.mean((energy(params, kinds, places, there) - target) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    return jax.tree.map(lambda p, g: p - 1e-5 * jnp.clip(g, -1, 1), params, grads), loss


for i in run.loop():
    atoms = np.clip(rng.normal(34, 5.5, BATCH).astype(int), 10, 64)
    width = 16 * -(-atoms.max() // 16) if run.fixed else atoms.max()
    there = (np.arange(width) < atoms[:, None]).astype("float32")
    kinds = rng.integers(0, 10, (BATCH, 64)).astype("int32")[:, :width]
    places = (rng.standard_normal((BATCH, 64, 3)) * 2).astype("float32")[:, :width]
    target = rng.standard_normal(BATCH).astype("float32")
    params, loss = train_step(params, kinds, places, there, target)
    loss.block_until_ready()
