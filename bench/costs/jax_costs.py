"""What JAX's ops, calls, compilations and recorded calls take. Usage: jax_costs.py FOLDER"""
import contextlib
import os
import shutil
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
from timing import in_turns

FOLDER = sys.argv[1]


@contextlib.contextmanager
def profiler(python=0):
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = python
    jax.profiler.start_trace(FOLDER, profiler_options=options)
    try:
        yield
    finally:
        jax.profiler.stop_trace()
        shutil.rmtree(FOLDER, ignore_errors=True)


def ops():
    a, b = jnp.ones(16), jnp.ones(16)

    def block():
        for _ in range(200):
            it = jnp.add(a, b)
        it.block_until_ready()

    in_turns("an op of JAX from Python (jnp.add of 16 numbers)", block, 200, profiler)


def jitted():
    small = jax.jit(lambda it: it + 1)
    a = jnp.ones(16)

    def block():
        it = a
        for _ in range(200):
            it = small(it)
        it.block_until_ready()

    in_turns("calling a jax.jit function from Python, one argument", block, 200, profiler)
    large = jax.jit(lambda all: [it + 1 for it in all])
    leaves = [jnp.ones(16) for _ in range(50)]

    def fifty():
        it = leaves
        for _ in range(20):
            it = large(it)
        jax.block_until_ready(it)

    in_turns("calling a jax.jit function from Python, 50 arguments", fifty, 20, profiler)


def recorded_calls():
    def called(it):
        return it

    def block():
        for at in range(2000):
            called(at)

    in_turns("a Python call, recorded by JAX's profiler", block, 2000, lambda: profiler(python=1), events=1)


def compilations():
    def step(it):
        return (it * 2 + 1).sum()

    def layers(it):
        for _ in range(20):
            it = jax.nn.relu(it @ jnp.ones((8, 8)))
        return it.sum()

    for cost, function in (("a compilation by jax.jit of 3 ops", step), ("a compilation by jax.jit of 20 layers", layers)):
        rows = iter(range(2, 10_000))
        run = jax.jit(function)
        in_turns(cost, lambda: run(jnp.ones((next(rows), 8))).block_until_ready(), 1, profiler, blocks=6, rounds=3)


ops()
jitted()
recorded_calls()
compilations()
