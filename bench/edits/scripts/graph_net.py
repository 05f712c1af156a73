"""A graph network in JAX."""
import time

import jax
import jax.numpy as jnp
import numpy as np

STEPS, WARM = 120, 10
rng = np.random.default_rng(0)
nodes = jnp.asarray(rng.standard_normal((128, 32)), jnp.float32)
links = jnp.asarray(rng.random((128, 128)) < 0.05, jnp.float32)
target = jnp.asarray(rng.standard_normal((128, 1)), jnp.float32)


def layer():
    return {
        "message": jnp.asarray(rng.standard_normal((32, 32)) * 0.1, jnp.float32),
        "update": jnp.asarray(rng.standard_normal((32, 32)) * 0.1, jnp.float32),
        "bias": jnp.zeros(32),
    }


def loss_fn(params, nodes, links, target):
    hidden = nodes
    degree = jnp.sum(links, axis=1, keepdims=True) + 1.0
    for layer in params:
        message = links @ (hidden @ layer["message"]) / degree
        hidden = jnp.tanh(hidden @ layer["update"] + message + layer["bias"])
        hidden = hidden / (jnp.sqrt(jnp.mean(hidden**2, axis=1, keepdims=True)) + 1e-5)
    return jnp.mean((jnp.mean(hidden, axis=1, keepdims=True) - target) ** 2)


def update(params, nodes, links, target):
    loss, grads = jax.value_and_grad(loss_fn)(params, nodes, links, target)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss


def main():
    params = [layer() for _ in range(4)]
    for step in range(STEPS):
        if step == WARM:
            began = time.perf_counter()
        params, loss = update(params, nodes, links, target)
    print(f"loss {float(loss):.3f}")
    print(f"{1e3 * (time.perf_counter() - began) / (STEPS - WARM):.3f} ms per step")


main()
