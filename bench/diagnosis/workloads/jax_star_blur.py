"""Sharpening telescope images in JAX: the loss blurs the network's picture by the full two-dimensional point spread.

Planted: the convolution with a 21 x 21 kernel, forward and in its gradient, is most of the step, though the Gaussian
is separable. Fix: blur the columns, then the rows.
"""
TRUTH = {
    "framework": "jax", "first_finding": "dominant-op",
    "also_right": [], "must_name": ["conv"], "healthy": False, "kind": "compute",
    "fix": "blur with a 21 x 1 and then a 1 x 21 kernel instead of their outer product",
}
from _driver import Run

run = Run("jax", warm=4, steps=20)
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(131)
seen = jnp.asarray(rng.gamma(0.5, 1.0, (4, 64, 64, 1)), jnp.float32)
params = {"code": jnp.asarray(rng.standard_normal((256, 192)) * 0.05, jnp.float32),
          "sky": jnp.asarray(rng.standard_normal((192, 256)) * 0.05, jnp.float32)}
spread = np.exp(-0.5 * (np.arange(-10, 11) / 3.0) ** 2).astype("float32")
spread /= spread.sum()


def convolve(image, kernel):
    kernel = jnp.asarray(kernel)[:, :, None, None]
    return jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def blur(image):
    if run.fixed:
        return convolve(convolve(image, spread[:, None]), spread[None, :])
    return convolve(image, np.outer(spread, spread))


def sharpen(params, seen):
    tiles = seen.reshape(4, 4, 16, 4, 16).transpose(0, 1, 3, 2, 4).reshape(-1, 256)
    tiles = jax.nn.softplus(jax.nn.relu(tiles @ params["code"]) @ params["sky"])
    return tiles.reshape(4, 4, 4, 16, 16).transpose(0, 1, 3, 2, 4).reshape(4, 64, 64, 1)


@jax.jit
def train_step(params, seen):
    def loss_fn(params):
        return jnp.mean((blur(sharpen(params, seen)) - seen) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss


for i in run.loop():
    with run.mark(i):
        params, loss = train_step(params, seen)
        loss.block_until_ready()
