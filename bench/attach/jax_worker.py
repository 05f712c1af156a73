"""A training loop of JAX with a profiler server: jax_worker.py PORT"""
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp

jax.profiler.start_server(int(sys.argv[1]))
x = weight = jnp.ones((256, 256))


@jax.jit
def train_step(weight, x):
    return weight - 1e-3 * jax.grad(lambda it: jnp.mean(jnp.tanh(x @ it) ** 2))(weight)


weight = train_step(weight, x).block_until_ready()
print("ready", flush=True)
step = 0
while True:
    with jax.profiler.StepTraceAnnotation("train", step_num=step):
        weight = train_step(weight, x).block_until_ready()
    step += 1
