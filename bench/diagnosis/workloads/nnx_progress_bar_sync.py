"""A Flax NNX recurrent network over sensor logs. The progress bar wants the loss, so `float(loss)` is called in every
step; after it the next batch is cut and despiked with NumPy.

Planted: without that call JAX would compute while NumPy prepares. Fix: read the loss every 25th step.
"""
TRUTH = {
    "framework": "jax", "first_finding": "sync-stall",
    "also_right": ["input-bound", "input-python", "python-overhead"], "same_fix": [], "must_name": [],
    "healthy": False, "kind": "compute", "fix": "if step % 25 == 0: bar.set_postfix(loss=float(loss))",
}
from _driver import Run

run = Run("jax", warm=4, steps=40)
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

rng = np.random.default_rng(0)
logs = rng.standard_normal((300, 4000, 4)).astype("float32")


class Forecaster(nnx.Module):
    def __init__(self, rngs):
        self.cell = nnx.GRUCell(4, 48, rngs=rngs)
        self.head = nnx.Linear(48, 4, rngs=rngs)

    def __call__(self, x):
        carry = jnp.zeros((x.shape[0], 48))

        def one(carry, value):
            carry, out = self.cell(carry, value)
            return carry, out
        _, outs = jax.lax.scan(one, carry, x.swapaxes(0, 1))
        return self.head(outs.swapaxes(0, 1))


model = Forecaster(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, x):
    def loss_fn(model):
        return jnp.mean((model(x[:, :-1]) - x[:, 1:]) ** 2)
    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


def next_batch():
    rows, start = rng.integers(0, 300, 24), rng.integers(0, 3800)
    cut = logs[rows, start:start + 160]
    out = np.median(np.lib.stride_tricks.sliding_window_view(cut, 25, axis=1), axis=-1)
    return (out - out.mean(1, keepdims=True)) / out.std(1, keepdims=True)


for step in run.loop(sync=lambda: loss.block_until_ready()):
    with run.mark(step):
        with run.part("batch"):
            x = next_batch()
        loss = train_step(model, optimizer, x)
        if not run.fixed or step % 25 == 0:
            shown = float(loss)
