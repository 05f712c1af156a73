"""A Flax (linen) network with optax whose parameters and Adam moments go to disk with Orbax in every third step.

Planted: the loop waits for the checkpoint. Fix: save every 500th step.
"""
TRUTH = {
    "framework": "jax", "first_finding": "checkpoint-stall",
    "also_right": ["step-outliers", "python-overhead"], "same_fix": ["step-outliers", "python-overhead"], "must_name": [],
    "healthy": False,
    "kind": "output", "fix": "if step % 500 == 499: checkpointer.save(...)",
}
from _driver import Run

run = Run("jax", warm=6, steps=30)
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import linen as nn
from flax.training.train_state import TrainState


class Critic(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (256, 256, 256):
            x = nn.LayerNorm()(nn.relu(nn.Dense(width)(x)))
        return nn.Dense(1)(x)[..., 0]


rng = np.random.default_rng(6)
model = Critic()
params = model.init(jax.random.key(0), jnp.zeros((1, 64)))
state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))
states = rng.standard_normal((20000, 64)).astype("float32")
returns = rng.standard_normal(20000).astype("float32")


@jax.jit
def train_step(state, x, y):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((state.apply_fn(p, x) - y) ** 2))(state.params)
    return state.apply_gradients(grads=grads), loss


checkpointer = ocp.PyTreeCheckpointer()
for step in run.loop(sync=lambda: jax.block_until_ready(state.params)):
    with run.mark(step):
        rows = rng.integers(0, 20000, 512)
        state, loss = train_step(state, states[rows], returns[rows])
        if step % (500 if run.fixed else 3) == 2:
            with run.part("save"):
                checkpointer.save(run.scratch / f"step{step}", {"params": state.params, "opt": state.opt_state})
