"""Bayesian optimisation with a Gaussian process in JAX: after each new observation the kernel's parameters are fitted
again on the first n points of a preallocated array, n being a static argument. No markers.

Planted: n grows by one in each step, so `fit` is compiled in each step. Fix: pass n as a value and mask the rest.
"""
TRUTH = {
    "framework": "jax", "first_finding": "recompilation",
    "also_right": [], "must_name": ["fit"], "healthy": False, "kind": "compile",
    "fix": "fit the whole array with a mask (jnp.arange(capacity) < n) instead of a static n",
}
from functools import partial

from _driver import Run

run = Run("jax", warm=2, steps=7)
import jax
import jax.numpy as jnp
import numpy as np
import optax

CAPACITY = 96
rng = np.random.default_rng(12)
points = rng.random((CAPACITY, 3)).astype("float32")
values = np.zeros(CAPACITY, np.float32)
optimiser = optax.adam(0.02)


def objective(x):
    return float(np.sin(5 * x).sum() + 0.1 * rng.standard_normal())


def nll(log_params, x, y, mask):
    scale, noise = jnp.exp(log_params["scale"]), jnp.exp(log_params["noise"])
    distance = jnp.sum((x[:, None] - x[None]) ** 2 / scale ** 2, -1)
    kernel = jnp.exp(-0.5 * distance) * mask[:, None] * mask[None]
    kernel += jnp.diag(jnp.where(mask > 0, noise + 1e-3, 1.0))
    chol = jnp.linalg.cholesky(kernel)
    alpha = jax.scipy.linalg.solve_triangular(chol, y * mask, lower=True)
    return 0.5 * alpha @ alpha + jnp.sum(jnp.log(jnp.diag(chol)))


def fit_masked(log_params, x, y, mask):
    def one(carry, _):
        params, state = carry
        loss, grads = jax.value_and_grad(nll)(params, x, y, mask)
        updates, state = optimiser.update(grads, state)
        return (optax.apply_updates(params, updates), state), loss
    (params, _), losses = jax.lax.scan(one, (log_params, optimiser.init(log_params)), None, 15)
    return params, losses[-1]


@partial(jax.jit, static_argnames="n")
def fit(log_params, x, y, n):
    return fit_masked(log_params, x[:n], y[:n], jnp.ones(n))


@jax.jit
def fit_padded(log_params, x, y, n):
    return fit_masked(log_params, x, y, (jnp.arange(CAPACITY) < n).astype(jnp.float32))


log_params = {"scale": jnp.zeros(3), "noise": jnp.float32(-2.0)}
for n in range(70):
    values[n] = objective(points[n])
for step in run.loop():
    n = 70 + step
    values[n] = objective(points[n])
    log_params, loss = (fit_padded if run.fixed else fit)(log_params, points, values, n=n + 1)
    loss.block_until_ready()
