"""A JAX speech recogniser that works out the word error rate of each batch in Python, between the steps.

Planted: edit distance in nested Python loops, many times longer than the step. Fix: every 20th step.
"""
TRUTH = {
    "framework": "jax", "first_finding": "python-overhead",
    "also_right": [], "must_name": [], "healthy": False, "kind": "python",
    "fix": "if step % 20 == 0: error_rate(...)",
}
from _driver import Run

run = Run("jax", warm=6, steps=24)
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(81)
FRAMES, SYMBOLS = 60, 32
audio = rng.standard_normal((16, FRAMES, 80)).astype("float32")
script = rng.integers(1, SYMBOLS, (16, FRAMES)).astype("int32")
params = {"encode": jnp.asarray(rng.standard_normal((80, 96)) * 0.1, jnp.float32),
          "mix": jnp.asarray(rng.standard_normal((96, 96)) * 0.05, jnp.float32),
          "out": jnp.asarray(rng.standard_normal((96, SYMBOLS)) * 0.1, jnp.float32)}


def loss_fn(params, audio, script):
    hidden = jax.nn.relu(audio @ params["encode"])

    def recur(state, frame):
        state = jnp.tanh(frame + state @ params["mix"])
        return state, state

    _, hidden = jax.lax.scan(recur, hidden[:, 0], jnp.swapaxes(hidden, 0, 1))
    logits = jnp.swapaxes(hidden, 0, 1) @ params["out"]
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), script[..., None], -1)
    return -jnp.mean(picked), jnp.argmax(logits, -1)


@jax.jit
def train_step(params, audio, script):
    (loss, heard), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, audio, script)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss, heard


def edit_distance(heard, said):
    row = list(range(len(said) + 1))
    for i, a in enumerate(heard, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(said, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def error_rate(heard, script):
    pairs = zip(np.asarray(heard).tolist(), script.tolist())
    return sum(edit_distance(a, b) for a, b in pairs) / script.size


losses, rates = [], []
for step in run.loop():
    with run.mark(step):
        params, loss, heard = train_step(params, audio, script)
        losses.append(float(loss))
        if not run.fixed or step % 20 == 0:
            with run.part("python"):
                rates.append(error_rate(heard, script))
