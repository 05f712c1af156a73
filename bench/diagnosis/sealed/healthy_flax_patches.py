"""Healthy: a small vision transformer in Flax with optax, one jitted step, images on the device, donated state."""
TRUTH = {"framework": "jax", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from functools import partial

from _driver import Run

run = Run("jax", warm=4, steps=16)
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
images = jnp.asarray(rng.random((512, 32, 32, 3)), jnp.float32)
labels = jnp.asarray(rng.integers(0, 100, 512))


class ViT(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(192, (4, 4), strides=(4, 4))(x)
        x = x.reshape(x.shape[0], -1, 192)
        x = x + self.param("place", nn.initializers.normal(0.02), (1, 64, 192))
        for _ in range(2):
            x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
            x = x + nn.Dense(192)(nn.gelu(nn.Dense(768)(nn.LayerNorm()(x))))
        return nn.Dense(100)(jnp.mean(nn.LayerNorm()(x), axis=1))


vit = ViT()
params = vit.init(jax.random.key(0), images[:1])
optimizer = optax.adamw(3e-4)
opt_state = optimizer.init(params)


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, first):
    x = jax.lax.dynamic_slice_in_dim(images, first, 32)
    y = jax.lax.dynamic_slice_in_dim(labels, first, 32)

    def loss_fn(params):
        return optax.softmax_cross_entropy_with_integer_labels(vit.apply(params, x), y).mean()
    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


for i in run.loop(sync=lambda: jax.block_until_ready(params)):
    with run.mark(i):
        params, opt_state, loss = train_step(params, opt_state, i * 32 % 480)
        if i % 10 == 0:
            print(i, float(loss))
