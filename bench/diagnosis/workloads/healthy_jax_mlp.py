"""Healthy: a JAX network with momentum, one jitted step, data on the device, the loss read every 10th step."""
TRUTH = {"framework": "jax", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("jax", warm=5, steps=25)
import jax
import jax.numpy as jnp

key = jax.random.key(0)
x = jax.random.normal(key, (512, 512))
y = jnp.sin(x[:, :10])
sizes = (512, 768, 768, 10)
params = [jax.random.normal(jax.random.fold_in(key, n), (n, m)) / n**0.5 for n, m in zip(sizes, sizes[1:])]
velocity = [jnp.zeros_like(p) for p in params]


def loss_fn(params, x, y):
    for w in params[:-1]:
        x = jax.nn.relu(x @ w)
    return jnp.mean((x @ params[-1] - y) ** 2)


@jax.jit
def train_step(params, velocity, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    velocity = [0.9 * v + g for v, g in zip(velocity, grads)]
    return [p - 0.01 * v for p, v in zip(params, velocity)], velocity, loss


for i in run.loop(sync=lambda: jax.block_until_ready(params)):
    with run.mark(i):
        params, velocity, loss = train_step(params, velocity, x, y)
        if i % 10 == 0:
            float(loss)
