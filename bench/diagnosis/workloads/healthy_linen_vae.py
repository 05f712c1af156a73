"""Healthy: a variational autoencoder in Flax linen with optax, one jitted step with donated state, data on the device,
the loss read every 20th step."""
TRUTH = {"framework": "jax", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from functools import partial

from _driver import Run

run = Run("jax", warm=5, steps=40)
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.training.train_state import TrainState


class VAE(nn.Module):
    @nn.compact
    def __call__(self, x, key):
        hidden = nn.relu(nn.Dense(400)(x))
        mean, spread = nn.Dense(20)(hidden), nn.Dense(20)(hidden)
        z = mean + jnp.exp(0.5 * spread) * jax.random.normal(key, mean.shape)
        return nn.Dense(784)(nn.relu(nn.Dense(400)(z))), mean, spread


digits = jnp.asarray(np.random.default_rng(0).random((8192, 784), dtype=np.float32))
model = VAE()
key = jax.random.key(0)
params = model.init(key, digits[:1], key)
state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))


@partial(jax.jit, donate_argnums=0)
def train_step(state, digits, key):
    key = jax.random.fold_in(key, state.step)
    x = jax.random.choice(key, digits, (256,))

    def loss_fn(params):
        logits, mean, spread = state.apply_fn(params, x, key)
        cross = optax.sigmoid_binary_cross_entropy(logits, x).sum(-1).mean()
        return cross - 0.5 * (1 + spread - mean ** 2 - jnp.exp(spread)).sum(-1).mean()
    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


for step in run.loop(sync=lambda: jax.block_until_ready(state.params)):
    with run.mark(step):
        state, loss = train_step(state, digits, key)
        if step % 20 == 0:
            print(step, float(loss))
