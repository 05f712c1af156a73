"""A graph convolution over a citation network in JAX and optax, the neighbours summed with a dense adjacency matrix.

Planted: the product with a matrix that is nearly all zeros is most of the step. Fix: gather along the edges and
jax.ops.segment_sum.
"""
TRUTH = {
    "framework": "jax", "first_finding": "dominant-op",
    "also_right": [], "must_name": ["dot"], "healthy": False, "kind": "compute",
    "fix": "jax.ops.segment_sum(h[sender] * weight, receiver, papers) instead of adjacency @ h", "change": "cheaper-op",
}
from _driver import Run

run = Run("jax", warm=4, steps=25)
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
PAPERS, LINKS, TOPICS = 2708, 10_556, 7
words = jnp.asarray(rng.random((PAPERS, 512)) < 0.02, jnp.float32)
topic = jnp.asarray(rng.integers(0, TOPICS, PAPERS))
sender, receiver = (np.append(rng.integers(0, PAPERS, LINKS), np.arange(PAPERS)) for _ in range(2))
degree = np.bincount(receiver, minlength=PAPERS)
weight = jnp.asarray(1 / np.sqrt(degree[sender] * degree[receiver]), jnp.float32)
adjacency = jnp.zeros((PAPERS, PAPERS)).at[receiver, sender].add(weight)


def neighbours(h):
    if run.fixed:
        return jax.ops.segment_sum(h[sender] * weight[:, None], receiver, PAPERS)
    return adjacency @ h


keys = jax.random.split(jax.random.key(0), 3)
sizes = (512, 64, 64, TOPICS)
params = [jax.random.normal(k, (m, n)) / m**0.5 for k, m, n in zip(keys, sizes, sizes[1:])]
optimizer = optax.adam(1e-2)
opt_state = optimizer.init(params)


@jax.jit
def train_step(params, opt_state):
    def loss_fn(params):
        h = words
        for matrix in params[:-1]:
            h = jax.nn.relu(neighbours(h @ matrix))
        logits = neighbours(h @ params[-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, topic).mean()
    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


for epoch in run.loop():
    with run.mark(epoch):
        params, opt_state, loss = train_step(params, opt_state)
        loss.block_until_ready()
