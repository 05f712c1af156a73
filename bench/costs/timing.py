"""Times small things many times, and hands the times to the runner as lines of JSON."""
import gc
import json
import time


def nanoseconds(block, units, blocks):
    """What one unit takes, once for each block. The first block warms up."""
    times = []
    block()
    gc.collect()
    gc.disable()
    for _ in range(blocks):
        begun = time.perf_counter_ns()
        block()
        times.append((time.perf_counter_ns() - begun) / units)
    gc.enable()
    return times


def tell(cost, bare, profiled=None, extra=None):
    """One row of the table: times without a profiler and with one, and what the profiler adds, in nanoseconds."""
    print(json.dumps({"cost": cost, "bare": bare, "profiled": profiled, "extra": extra}), flush=True)


def in_turns(cost, block, units, profiler, blocks=15, rounds=6, events=None):
    """Times a block without and with a profiler, in turns, so that what the machine does happens to both.

    `events` is how many events the profiler records for a unit; where it is given, the row says what each of them
    adds, round by round.
    """
    bare, profiled, extra = [], [], []
    for _ in range(rounds):
        off = nanoseconds(block, units, blocks)
        with profiler():
            on = nanoseconds(block, units, blocks)
        bare += off
        profiled += on
        if events:
            off.sort(), on.sort()
            extra.append((on[len(on) // 2] - off[len(off) // 2]) / events)
    tell(cost, bare, profiled, extra or None)
