"""A small speech recogniser in JAX that reports its error rate."""
import time

import jax
import jax.numpy as jnp
import numpy as np

STEPS, WARM = 120, 20
rng = np.random.default_rng(81)
FRAMES, SYMBOLS = 40, 32
params = {
    "encode": jnp.asarray(rng.standard_normal((80, 256)) * 0.1, jnp.float32),
    "mix": jnp.asarray(rng.standard_normal((256, 256)) * 0.05, jnp.float32),
    "out": jnp.asarray(rng.standard_normal((256, SYMBOLS)) * 0.1, jnp.float32),
}


def loss_fn(params, audio, script):
    hidden = jax.nn.relu(audio @ params["encode"])
    hidden = jnp.tanh(hidden @ params["mix"])
    logits = hidden @ params["out"]
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), script[..., None], -1)
    return -jnp.mean(picked), jnp.argmax(logits, -1)


@jax.jit
def train_step(params, audio, script):
    (loss, heard), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, audio, script)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss, heard


def batches(n):
    audio = rng.standard_normal((16, FRAMES, 80)).astype("float32")
    script = rng.integers(1, SYMBOLS, (16, FRAMES)).astype("int32")
    for _ in range(n):
        yield audio, script


def edit_distance(heard, said):
    row = list(range(len(said) + 1))
    for i, a in enumerate(heard, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(said, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def report_errors(heard, script):
    pairs = zip(np.asarray(heard).tolist(), script.tolist())
    rates.append(sum(edit_distance(a, b) for a, b in pairs) / script.size)


rates, times = [], []
for audio, script in batches(STEPS):
    params, loss, heard = train_step(params, audio, script)
    report_errors(heard, script)
    times.append(time.perf_counter())
print(f"error rate {np.mean(rates):.3f}")
print(f"{1e3 * (times[-1] - times[WARM - 1]) / (STEPS - WARM):.3f} ms per step")
