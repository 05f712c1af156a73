#!/usr/bin/env python3
"""Measures real step times for trials: a numpy loop of about 30 ms a step, alone and with 3 % more.

    measure.py [--device] [TRIALS [ROUNDS [STEPS]]] > series.txt

With --device a step is what it is on an accelerator: the host works for a fifth of it, then waits
until the device is done, which takes the same time in every step; in B that is 3 % longer.

Each trial has three sides: A, A again, and B, which does 3 % more of the same work. Each side runs
ROUNDS times, each time as a new process of STEPS steps; the sides take turns, forwards in even
rounds and backwards in odd ones, so that what the machine does happens to all three alike.
A line is: trial, side, round, and of each step its time and its CPU time in nanoseconds, as 1:1.
CPU time leaves out most of what others do to a busy machine, so it says what a quiet one would show.
"""

import os
import subprocess
import sys
import time

TYPICAL_NS = 30_000_000
UNIT = 96  # Products of matrices this small stay in the cache: the step does the same each time.
MORE = 1.03


def product_count():
    """How many products take about 30 ms here, with the machine as it is now."""
    rounds = [_step_ns(1000, 1)[0][1] for _ in range(7)]
    return round(TYPICAL_NS / (sorted(rounds)[3] / 1000))


def _step_ns(products, steps):
    import numpy

    a = numpy.random.default_rng(1).random((UNIT, UNIT), dtype=numpy.float32)
    b, out = a.T.copy(), numpy.empty_like(a)
    times = []
    before = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(steps):
        for _ in range(products):
            numpy.matmul(a, b, out=out)
        now = time.perf_counter_ns(), time.process_time_ns()
        times.append((now[0] - before[0], now[1] - before[1]))
        before = now
    return times


def _device_step_ns(device_ns, products, steps):
    import numpy

    a = numpy.random.default_rng(1).random((UNIT, UNIT), dtype=numpy.float32)
    b, out = a.T.copy(), numpy.empty_like(a)
    times = []
    before = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(steps):
        done = time.perf_counter_ns() + device_ns
        for _ in range(products):
            numpy.matmul(a, b, out=out)
        time.sleep(max(done - time.perf_counter_ns(), 0) / 1e9)
        now = time.perf_counter_ns(), time.process_time_ns()
        times.append((now[0] - before[0], now[1] - before[1]))
        before = now
    return times


def main(device, trials=40, rounds=5, steps=40):
    # One thread: how threads are placed is another question.
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

    def child(*args):
        command = [sys.executable, __file__, "--child", *map(str, args)]
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout

    products = int(child("count"))
    if device:
        print(f"# a device of {TYPICAL_NS} ns a step, {round(TYPICAL_NS * MORE)} in B, beside {products // 5} products")
        a, b = [(it, products // 5) for it in (TYPICAL_NS, round(TYPICAL_NS * MORE))]
    else:
        print(f"# {products} products a step, {round(products * MORE)} in B")
        a, b = (products,), (round(products * MORE),)
    sides = [("A", a), ("A2", a), ("B", b)]
    for trial in range(trials):
        for turn in range(rounds):
            for side, work in sides if turn % 2 == 0 else reversed(sides):
                print(trial, side, turn, child(*work, steps).strip(), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--child", "count"]:
        print(product_count())
    elif sys.argv[1:2] == ["--child"]:
        work = list(map(int, sys.argv[2:]))
        steps = _device_step_ns(*work) if len(work) == 3 else _step_ns(*work)
        print(*(f"{wall}:{cpu}" for wall, cpu in steps))
    else:
        rest = [it for it in sys.argv[1:] if it != "--device"]
        main("--device" in sys.argv, *map(int, rest))
