"""What a step is, and when steps are steady. No framework is known here.

A training loop shows itself by calls that come again and again: of a compiled function, for
gradients, of an optimizer, for the next batch. One of them is taken as the beginning of a step.
"""

from __future__ import annotations

from collections import deque
from typing import Hashable, Optional, TypeVar

Key = TypeVar("Key", bound=Hashable)

# What is called once a step almost always comes first. A function is called once a step mostly;
# the next batch is asked for ahead of time by some, and several times a step by others.
RANK = {"step": 4, "optimizer": 3, "gradient": 2, "function": 1, "next": 0}

# Three intervals are the fewest of which two can be compared after the first, which compiles.
FEWEST_CALLS = 4
# So many calls of something else without one of the step's own: the loop has moved on.
MOVED_ON = 12
# What takes longer than this is taken for a loop of its own, however long the one before it took.
LONGEST_EVALUATION_NS = 30_000_000_000


class Candidate:
    """Calls of one kind to one thing."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        self.calls = 0
        self.inside_ns = 0
        # How many since the last step began, and when that was.
        self.since_step = 0
        self.step_ns = 0
        #: The last ones.
        self.starts: deque[int] = deque(maxlen=64)

    def begins(self, at_ns: int, step_ns: int) -> None:
        self.calls += 1
        if step_ns != self.step_ns:
            self.step_ns = step_ns
            self.since_step = 0
        self.since_step += 1
        self.starts.append(at_ns)

    def ends(self, began_ns: int, at_ns: int) -> None:
        # The first call traces and compiles: it says nothing of the later ones.
        if self.calls > 1:
            self.inside_ns += at_ns - began_ns


# When a program has ended, what came twice is the best that is known.
FEWEST_AT_END = 2


def choose(candidates: dict[Key, Candidate], fewest: int = FEWEST_CALLS) -> Optional[Key]:
    """Which call begins a step, or None as long as that is open."""
    seen = {key: it for key, it in candidates.items() if it.calls >= 2}
    if not seen:
        return None
    busiest = max(it.calls for it in seen.values())

    def order(key: Key) -> tuple[int, int, int]:
        it = seen[key]
        # What is called seldom beside the others is no step: an evaluation, a checkpoint.
        often = 1 if it.calls * 8 >= busiest else 0
        return often, RANK.get(it.kind, 0), it.inside_ns

    best = max(seen, key=order)
    it = seen[best]
    # Where one batch goes through several such calls, the batch is the step.
    for key, other in seen.items():
        if other.kind == "next" and it.kind != "next" and other.calls >= fewest:
            times = it.calls / other.calls
            if times >= 1.9 and abs(times - round(times)) < 0.25:
                best, it = key, other
                break
    return best if it.calls >= fewest else None


# Two neighbouring stretches of steps whose medians differ by less are taken as the same pace. A
# busy machine moves single steps by more, medians seldom.
SAME_PACE = 1.25
SAME_PACE_OF_FEW = 1.5
FEW = 3
# A pause of so many steps ends a phase: what comes after it is another loop, or another part of it.
PAUSE = 5
SHORTEST_PAUSE_NS = 50_000_000
# With less behind it nothing is known of a run; a short program may end soon after. Buffers that
# fill later change the pace, and a later window replaces the first.
FEWEST_NS = 100_000_000
ENOUGH_STEPS = 30
# The cap: a loop that finds no pace is captured as it is. A later window replaces the first one
# where the pace turns out to be another.
CAP_STEPS, CAP_NS = 8, 1_000_000_000
LONGEST_NS = 60_000_000_000


def in_words(time_ns: float) -> str:
    return "%.1f ms" % (time_ns / 1e6) if time_ns >= 1e6 else "%.1f µs" % (time_ns / 1e3)


def median(values: list[int]) -> int:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def same_pace(a: list[int], b: list[int]) -> bool:
    low, high = sorted((median(a), median(b)))
    few = min(len(a), len(b)) < FEW
    return high <= max(low, 1) * (SAME_PACE_OF_FEW if few else SAME_PACE)


def steady(durations: list[int]) -> Optional[str]:
    """Whether steps have found their pace: the reason, or None."""
    n, elapsed = len(durations), sum(durations)
    if n < FEWEST_CALLS - 1:
        return None
    if elapsed < FEWEST_NS and n < ENOUGH_STEPS:
        return None
    # The last quarter against the one before it, at least one step each.
    stretch = max(1, min(10, n // 4))
    last, before = durations[-stretch:], durations[-2 * stretch : -stretch]
    pace = "%s after %d" % (in_words(median(last)), n)
    if same_pace(last, before):
        return "steps are steady: %s" % pace
    if (n >= CAP_STEPS and elapsed >= CAP_NS) or elapsed >= LONGEST_NS:
        return "steps found no steady pace: %s" % pace
    return None
