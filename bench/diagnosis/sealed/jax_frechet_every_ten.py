"""A small generator in JAX; every tenth step the Fréchet distance between real and generated features is computed.

Planted: a matrix square root with SciPy inside the loop makes each tenth step many times longer.
Fix: compute it every 500th step.
"""
TRUTH = {
    "framework": "jax", "first_finding": "step-outliers",
    "also_right": ["python-overhead", "latency-tail"], "same_fix": ["python-overhead", "latency-tail"], "must_name": [],
    "healthy": False, "kind": "compute",
    "fix": "if step % 500 == 0: frechet(...)", "change": "every-n-steps",
}
from _driver import Run

run = Run("jax", warm=12, steps=60)
import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.linalg

rng = np.random.default_rng(0)
SIZE = 160
real = rng.standard_normal((1024, SIZE)).astype("float32")
keys = jax.random.split(jax.random.key(0), 3)
params = [jax.random.normal(k, shape) * 0.06 for k, shape in zip(keys, ((64, 512), (512, 512), (512, SIZE)))]
optimizer = optax.adam(1e-4, b1=0.5)
opt_state = optimizer.init(params)


def generate(params, z):
    for weight in params[:-1]:
        z = jax.nn.leaky_relu(z @ weight)
    return z @ params[-1]


@jax.jit
def train_step(params, opt_state, z, x):
    def loss_fn(params):
        fake = generate(params, z)
        distance = jnp.sum(fake**2, 1)[:, None] + jnp.sum(x**2, 1) - 2 * fake @ x.T
        return jnp.mean(jax.nn.logsumexp(-distance / SIZE, axis=1) * -1.0), fake
    (loss, fake), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss, fake


def frechet(fake, real):
    middle = np.cov(fake.T), np.cov(real.T)
    root = scipy.linalg.sqrtm(middle[0] @ middle[1]).real
    return np.sum((fake.mean(0) - real.mean(0)) ** 2) + np.trace(middle[0] + middle[1] - 2 * root)


scores = []
for step in run.loop():
    z = rng.standard_normal((1024, 64), np.float32)
    with run.mark(step):
        params, opt_state, loss, fake = train_step(params, opt_state, z, real)
        loss.block_until_ready()
        if step % (500 if run.fixed else 10) == 0:
            with run.part("evaluation"):
                scores.append(frechet(np.asarray(fake), real))
