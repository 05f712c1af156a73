"""A Flax NNX regression saved with orbax every fourth step.

Planted: `wait_until_finished` right after each save; the training waits for the disk. Fix: save every
200th step.
"""
TRUTH = {
    "framework": "jax", "first_finding": "checkpoint-stall",
    "also_right": ["step-outliers", "python-overhead"], "same_fix": ["step-outliers", "python-overhead"],
    "must_name": [], "healthy": False, "kind": "compute",
    "fix": "if step % 200 == 0: checkpointer.save(...)", "change": "every-n-steps",
}
from _driver import Run

run = Run("jax", warm=6, steps=24)
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx

rng = np.random.default_rng(0)
x = jnp.asarray(rng.standard_normal((512, 512)), jnp.float32)
y = jnp.asarray(rng.standard_normal((512, 1)), jnp.float32)


class Regressor(nnx.Module):
    def __init__(self, rngs):
        self.inner = nnx.List([nnx.Linear(512 if i == 0 else 768, 768, rngs=rngs) for i in range(4)])
        self.head = nnx.Linear(768, 1, rngs=rngs)

    def __call__(self, x):
        for layer in self.inner:
            x = nnx.gelu(layer(x))
        return self.head(x)


model = Regressor(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
    optimizer.update(model, grads)
    return loss


checkpointer = ocp.StandardCheckpointer()
for step in run.loop(sync=checkpointer.wait_until_finished):
    with run.mark(step):
        loss = train_step(model, optimizer, x, y)
        loss.block_until_ready()
        if step % (200 if run.fixed else 4) == 0:
            with run.part("checkpoint"):
                checkpointer.save(run.scratch / f"step-{step}", nnx.to_pure_dict(nnx.state(model)))
                checkpointer.wait_until_finished()
