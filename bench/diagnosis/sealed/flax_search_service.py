"""Embedding search texts with a Flax encoder, one request at a time; most are queries, one in twenty a whole document.

Planted: the rare long documents make the tail (no compilation: both lengths are padded and known). Fix: embed the
first 192 tokens of a document.
"""
TRUTH = {
    "framework": "jax", "first_finding": "latency-tail",
    "also_right": ["step-outliers"], "same_fix": ["step-outliers"], "must_name": [], "healthy": False,
    "kind": "compute",
    "fix": "truncate requests to 192 tokens before padding",
}
from _driver import Run

run = Run("jax", warm=22, steps=120)
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(5000, 160)(tokens)
        for _ in range(3):
            x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
            x = x + nn.Dense(160)(nn.gelu(nn.Dense(640)(nn.LayerNorm()(x))))
        x = jnp.mean(x, axis=1)
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


encoder = Encoder()
params = encoder.init(jax.random.key(0), jnp.zeros((1, 64), int))
embed = jax.jit(encoder.apply)
limit = 192 if run.fixed else 1024
for request in run.loop():
    length = 1000 if request % 20 == 7 else rng.integers(10, 60)
    words = rng.integers(1, 5000, length)[:limit]
    tokens = np.zeros((1, 64 if len(words) <= 64 else limit), np.int32)
    tokens[0, :len(words)] = words
    with run.mark(request, "request"):
        embed(params, tokens).block_until_ready()
