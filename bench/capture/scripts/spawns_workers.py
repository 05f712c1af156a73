"""Spawned workers import the framework themselves, and train nothing."""
import multiprocessing

from _loop import jax_step, train


def work(n):
    import jax.numpy as jnp

    return float(jnp.sum(jnp.ones(n)))


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(sum(pool.map(work, [1, 2, 3])), flush=True)
        train(jax_step(), 150)
        print(sum(pool.map(work, [4, 5])), flush=True)
