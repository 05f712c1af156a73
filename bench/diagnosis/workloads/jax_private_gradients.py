"""Differentially private training in JAX and optax: the gradient of every example is clipped on its own.

Planted: a Python loop over the examples of a batch; each takes a jitted call for its gradient and a few unjitted ones
to clip and add it. Fix: jax.vmap over the batch inside one jitted step.
"""
TRUTH = {
    "change": "vectorize",
    "framework": "jax", "first_finding": "eager-ops",
    "also_right": ["tiny-ops", "small-batch", "python-overhead"],
    "same_fix": ["tiny-ops", "small-batch", "python-overhead"], "must_name": [], "healthy": False, "kind": "runtime",
    "fix": "jax.vmap(jax.grad(loss_fn), in_axes=(None, 0, 0)) and the clipping in one jitted function instead of the loop over examples",
}
from _driver import Run

run = Run("jax", warm=3, steps=20)
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
X = rng.standard_normal((4096, 784)).astype("float32")
Y = rng.integers(0, 10, 4096)
keys = jax.random.split(jax.random.key(0), 2)
params = {"w1": jax.random.normal(keys[0], (784, 64)) * 0.03, "b1": jnp.zeros(64),
          "w2": jax.random.normal(keys[1], (64, 10)) * 0.1, "b2": jnp.zeros(10)}
optimiser = optax.sgd(0.1, momentum=0.9)
opt_state = optimiser.init(params)


def loss_fn(params, x, y):
    hidden = jax.nn.relu(x @ params["w1"] + params["b1"])
    logits = hidden @ params["w2"] + params["b2"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, y)


grad_one = jax.jit(jax.grad(loss_fn))


def clip(grads):
    scale = jnp.minimum(1.0, 1.0 / optax.global_norm(grads))
    return jax.tree.map(lambda g: g * scale, grads)


def private_gradient(params, x, y):
    total = jax.tree.map(jnp.zeros_like, params)
    for i in range(len(x)):
        total = jax.tree.map(jnp.add, total, clip(grad_one(params, x[i], y[i])))
    return jax.tree.map(lambda g: g / len(x), total)


@jax.jit
def private_gradient_vmapped(params, x, y):
    grads = jax.vmap(jax.grad(loss_fn), in_axes=(None, 0, 0))(params, x, y)
    scale = jnp.minimum(1.0, 1.0 / jax.vmap(optax.global_norm)(grads)) / len(x)
    return jax.tree.map(lambda g: jnp.tensordot(scale, g, 1), grads)


@jax.jit
def apply(params, opt_state, grads):
    updates, opt_state = optimiser.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state


for step in run.loop(sync=lambda: jax.block_until_ready(params)):
    with run.mark(step):
        rows = rng.integers(0, 4096, 32)
        gradient = private_gradient_vmapped if run.fixed else private_gradient
        grads = gradient(params, X[rows], Y[rows])
        params, opt_state = apply(params, opt_state, grads)
