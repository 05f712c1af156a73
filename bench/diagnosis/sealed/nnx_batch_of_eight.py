"""A Flax NNX classifier of handwritten digits, trained with eight images a step.

Planted: the batch is too small; updating the weights and starting the step cost more than the images do.
Fix: 128 images a step.
"""
TRUTH = {
    "framework": "jax", "first_finding": "small-batch",
    "also_right": ["tiny-ops", "python-overhead"], "same_fix": [], "must_name": [], "healthy": False, "kind": "runtime",
    "fix": "batch_size = 128", "change": "larger-batch",
}
from _driver import Run

run = Run("jax", warm=8, steps=60)
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

run.items = batch_size = 128 if run.fixed else 8
rng = np.random.default_rng(0)
digits = rng.random((8192, 28, 28, 1), np.float32)
labels = rng.integers(0, 10, 8192)


class CNN(nnx.Module):
    def __init__(self, rngs):
        self.conv1 = nnx.Conv(1, 16, (5, 5), strides=2, rngs=rngs)
        self.conv2 = nnx.Conv(16, 32, (3, 3), strides=2, rngs=rngs)
        self.linear1 = nnx.Linear(7 * 7 * 32, 128, rngs=rngs)
        self.linear2 = nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.conv2(nnx.relu(self.conv1(x))))
        x = nnx.relu(self.linear1(x.reshape(x.shape[0], -1)))
        return self.linear2(x)


model = CNN(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adamw(1e-3, 0.9), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, x, y):
    def loss_fn(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()
    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


for i in run.loop(sync=lambda: loss.block_until_ready()):
    first = i * batch_size % 8192
    with run.mark(i):
        loss = train_step(model, optimizer, digits[first:first + batch_size], labels[first:first + batch_size])
        if i % 50 == 0:
            print(i, float(loss))
