"""A Flax (linen) network on digits; shift, contrast and standardisation are done in Python, digit by digit.

Planted: the loader is a Python loop in the training thread. Fix: shift and standardise the whole batch at once.
"""
TRUTH = {
    "framework": "jax", "first_finding": "input-python",
    "also_right": ["input-bound", "python-overhead"], "same_fix": ["python-overhead"], "must_name": [],
    "healthy": False, "kind": "python",
    "fix": "one index and one standardisation for the batch instead of the loop over digits", "change": "vectorize",
}
from _driver import Run

run = Run("jax", warm=5, steps=30)
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state

rng = np.random.default_rng(0)
digits = rng.integers(0, 255, (4096, 28, 28), dtype=np.uint8)
labels = rng.integers(0, 10, 4096)


def augment_batch(chosen):
    if run.fixed:
        count = len(chosen)
        down, right = rng.integers(-3, 4, (2, count, 1))
        rows, columns = (np.arange(28) - down) % 28, (np.arange(28) - right) % 28
        batch = digits[chosen[:, None, None], rows[:, :, None], columns[:, None]].astype(np.float32)
        batch = batch * rng.uniform(0.8, 1.2, (count, 1, 1)).astype(np.float32)
        batch = (batch - batch.mean((1, 2), keepdims=True)) / (batch.std((1, 2), keepdims=True) + 1e-3)
        return np.clip(batch, -3, 3)[..., None]
    batch = []
    for index in chosen:
        digit = digits[index].astype(np.float32)
        down, right = rng.integers(-3, 4, 2)
        digit = np.roll(digit, (down, right), axis=(0, 1))
        digit = digit * rng.uniform(0.8, 1.2)
        digit = (digit - digit.mean()) / (digit.std() + 1e-3)
        batch.append(np.clip(digit, -3, 3)[..., None])
    return np.stack(batch).astype(np.float32)


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(16, (4, 4), strides=(4, 4))(x))
        x = x.reshape(x.shape[0], -1)
        x = nn.relu(nn.Dense(128)(x))
        return nn.Dense(10)(x)


net = Net()
params = net.init(jax.random.key(0), jnp.zeros((1, 28, 28, 1)))["params"]
state = train_state.TrainState.create(apply_fn=net.apply, params=params, tx=optax.adam(1e-3))


@jax.jit
def train_step(state, x, y):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


for i in run.loop():
    with run.mark(i):
        chosen = rng.integers(0, 4096, 256)
        with run.part("input"):
            x = augment_batch(chosen)
        state, loss = train_step(state, x, labels[chosen])
        loss.block_until_ready()
