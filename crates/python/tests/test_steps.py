"""What is taken as a step, and when steps are steady."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import stroboscope
from stroboscope._capture import steps
from stroboscope._capture.frameworks import FRAMEWORKS
from stroboscope._capture.sites import LIBRARIES

MS = 1_000_000


def seen(*loop: tuple[str, str, float], times: int) -> dict[str, steps.Candidate]:
    """A loop of calls (kind, name, how long in ms), `times` over."""
    candidates: dict[str, steps.Candidate] = {}
    now = 0
    for _ in range(times):
        for kind, name, took in loop:
            it = candidates.setdefault(name, steps.Candidate(kind, name))
            it.begins(now, 0)
            it.ends(now, now + int(took * MS))
            now += int(took * MS)
    return candidates


def test_nothing_is_a_step_before_it_has_come_again():
    assert steps.choose({}) is None
    assert steps.choose(seen(("function", "f", 1), times=3)) is None
    assert steps.choose(seen(("function", "f", 1), times=4)) == "f"


def test_the_function_goes_before_the_batch():
    loop = [("next", "data", 50), ("function", "train", 1)]
    assert steps.choose(seen(*loop, times=4)) == "train"


def test_of_two_functions_the_longer_one_is_the_step():
    loop = [("function", "generator", 3), ("function", "discriminator", 2)]
    assert steps.choose(seen(*loop, times=5)) == "generator"


def test_an_optimizer_is_called_once_a_step():
    loop = [("function", "forward", 9), ("function", "forward", 9), ("optimizer", "adam", 1)]
    assert steps.choose(seen(*loop, times=5)) == "adam"


def test_a_batch_that_goes_through_a_function_twice_is_one_step():
    loop = [("next", "data", 1), ("function", "f", 5), ("function", "f", 5)]
    assert steps.choose(seen(*loop, times=6)) == "data"


def test_an_evaluation_now_and_then_is_no_step():
    candidates = seen(("function", "train", 1), times=40)
    evaluation = seen(("function", "evaluate", 100), times=4)
    assert steps.choose({**candidates, **evaluation}) == "train"


@pytest.mark.parametrize(
    ("durations", "expected"),
    [
        # The first one compiles; the others are alike.
        ([2000, 200, 210], "steady"),
        ([2000, 200], None),
        # Too short a time to have seen anything, until there are many.
        ([50, 1, 1, 1], None),
        ([50] + [1] * 40, "steady"),
        # Slower and slower: in the end it is captured as it is.
        ([100, 200, 400], None),
        ([100, 200, 400, 800, 1600, 3200, 6400, 12800], "no steady pace"),
    ],
)
def test_steady(durations: list[int], expected: str | None):
    said = steps.steady([it * MS for it in durations])
    assert said is None if expected is None else said is not None and expected in said


def test_every_prefix_of_a_steady_run_is_judged_without_an_error():
    durations = [500 * MS] + [30 * MS] * 500
    firsts = [n for n in range(len(durations)) if steps.steady(durations[:n])]
    assert firsts and firsts[0] <= 30


def test_the_hook_waits_for_every_framework():
    """The hook stands alone, in any Python: it repeats the names, and must not forget one."""
    hook = Path(stroboscope.__file__).parent / "_hook" / "sitecustomize.py"
    (waits_for,) = [
        ast.literal_eval(it.value)
        for it in ast.walk(ast.parse(hook.read_text()))
        if isinstance(it, ast.Assign) and isinstance(it.value, ast.Set)
    ]
    assert waits_for == set(FRAMEWORKS) | set(LIBRARIES)
