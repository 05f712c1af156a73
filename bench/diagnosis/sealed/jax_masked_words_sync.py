"""A recurrent masked language model with optax; the loss of each step is read before the next batch is masked.

Planted: `loss.item()` makes Python wait for each step, so that masking the next batch never runs beside the training.
Fix: keep the losses on the device and read them every 25th step.
"""
TRUTH = {
    "framework": "jax", "first_finding": "sync-stall",
    "also_right": ["input-python", "python-overhead"], "same_fix": [], "must_name": [], "healthy": False,
    "kind": "compute", "fix": "if step % 25 == 0: print(loss.item())", "change": "in-background",
}
from _driver import Run

run = Run("jax", warm=5, steps=40)
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
VOCABULARY, WIDTH, BATCH, LENGTH = 3000, 64, 32, 64
corpus = rng.integers(4, VOCABULARY, (20_000, LENGTH)).astype(np.int32)
keys = jax.random.split(jax.random.key(0), 4)
shapes = {"embed": (VOCABULARY, WIDTH), "input": (WIDTH, WIDTH), "hidden": (WIDTH, WIDTH), "gate": (WIDTH, WIDTH)}
params = {name: 0.1 * jax.random.normal(key, shape) for key, (name, shape) in zip(keys, shapes.items())}
optimizer = optax.adamw(1e-3)
opt_state = optimizer.init(params)


def mask_batch():
    """Masks a tenth of the words and draws, for each sentence, other words to tell them from."""
    tokens = corpus[rng.integers(0, len(corpus), BATCH)]
    picked = np.argsort(rng.random((BATCH, LENGTH)), axis=1)[:, :6]
    targets = np.take_along_axis(tokens, picked, 1)
    masked = tokens.copy()
    np.put_along_axis(masked, picked, 1, 1)
    others = np.argsort(rng.random((BATCH, VOCABULARY)), axis=1)[:, :100]
    return masked, picked, targets, others


def loss_fn(params, tokens, picked, targets, others):
    words = params["embed"][tokens] @ params["input"]

    def cell(h, word):
        gate = jax.nn.sigmoid(word + h @ params["gate"])
        h = gate * h + (1 - gate) * jnp.tanh(word + h @ params["hidden"])
        return h, h

    _, states = jax.lax.scan(cell, jnp.zeros((BATCH, WIDTH)), words.swapaxes(0, 1))
    states = jnp.take_along_axis(states.swapaxes(0, 1), picked[..., None], 1)
    right = jnp.sum(states * params["embed"][targets], -1)
    wrong = jnp.einsum("bpw,bow->bpo", states, params["embed"][others])
    return jnp.mean(jax.nn.logsumexp(wrong, -1) - right)


@jax.jit
def train_step(params, opt_state, *batch):
    loss, grads = jax.value_and_grad(loss_fn)(params, *batch)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


losses = []
for step in run.loop(sync=lambda: jax.block_until_ready(params)):
    with run.mark(step):
        batch = mask_batch()
        params, opt_state, loss = train_step(params, opt_state, *batch)
        if run.fixed:
            losses.append(loss)
            if step % 25 == 0:
                print(step, losses[-1].item())
        else:
            losses.append(loss.item())
