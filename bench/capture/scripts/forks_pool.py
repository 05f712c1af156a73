"""A pool of forked processes works beside the training."""
import multiprocessing

from _loop import jax_step, train


def square(n):
    return n * n


if __name__ == "__main__":
    step = jax_step()
    step()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        train(step, 150, at={n: lambda: pool.map(square, range(10)) for n in range(5, 150, 20)})
    print("done", flush=True)
