"""Steps after the window: only noted, on a way that costs a step next to nothing."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

from stroboscope import _capture
from stroboscope._capture import frameworks, log, steps


class Function:
    """Stands for a framework's compiled function: what is called is an object, again and again."""

    def __init__(self, work: Callable[..., Any] = lambda: None) -> None:
        self.work = work

    def __call__(self) -> Any:
        return self.work()


class Profiler:
    """Stands for a framework's profiler, which is on or off."""

    is_on = False

    def start(self, folder: str) -> None:
        assert not self.is_on
        self.is_on = True

    def stop(self, save: bool) -> None:
        assert self.is_on
        self.is_on = False


class Watched:
    """A process whose functions are watched, as a framework's are."""

    def __init__(self, folder: Path, is_minded: bool = True, **settings: Any) -> None:
        if is_minded:
            self.engine = _capture.begin(str(folder), _capture.Settings(settings))
        else:
            self.engine = _capture.Engine(str(folder), _capture.Settings(settings))
            _capture.relay.listen(self.engine)
        self.engine.frameworks["test"] = Profiler()
        self.told: list[str] = []
        begins = self.engine.begins

        def told(called: frameworks.Called) -> frameworks.After:
            self.told.append(called.name)
            return begins(called)

        _capture.relay.begins = told

    def function(self, name: str, kind: str = "function") -> type[Function]:
        """A class of functions, all of that name."""

        class It(Function):
            pass

        def identify(it: Any) -> frameworks.Called:
            return frameworks.Called(("test", kind, name), name)

        known = frameworks._Known(identify)
        it: Any = It
        it.__call__ = frameworks._around(Function.__call__, _capture.relay, known)
        return It

    def settled(self, step: Callable[[], Any]) -> None:
        """Steps until nothing is asked of them any more."""
        for _ in range(100):
            step()
        assert self.engine.only_notes
        self.told.clear()

    def records(self, kind: str) -> list[list[Any]]:
        self.engine.log.flush()
        lines = Path(self.engine.log.path).read_text().splitlines()[1:]
        return [it for it in map(json.loads, lines) if it[0] == kind]

    def n_steps(self) -> int:
        return self.records("step")[-1][2]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    it = Watched(tmp_path, capture=False)
    yield it
    _capture.end(it.engine)


def test_steps_are_counted_and_the_watcher_is_not_asked(watched: Watched) -> None:
    train = watched.function("train")()
    watched.settled(train)
    before = watched.n_steps()
    began = time.time_ns()
    for _ in range(50):
        train()
    ended = time.time_ns()
    assert watched.told == []
    noted = watched.records("step")[-50:]
    assert [it[2] for it in noted] == list(range(before + 1, before + 51))
    times = [it[1] for it in noted]
    assert began <= times[0] and times == sorted(times) and times[-1] <= ended


def test_what_a_step_calls_is_part_of_it(watched: Watched) -> None:
    inner = watched.function("inner")()
    outer = watched.function("outer")
    itself: list[Function] = []

    def work() -> None:
        inner()
        if len(itself) == 1:
            itself.append(itself[0])
            itself[0]()
            itself.pop()

    train = outer(work)
    itself.append(train)
    watched.settled(train)
    before = watched.n_steps()
    for _ in range(30):
        train()
    assert watched.n_steps() == before + 30
    assert watched.told == []


def test_another_thread_makes_no_step(watched: Watched) -> None:
    train = watched.function("train")()
    watched.settled(train)
    before = watched.n_steps()

    def elsewhere() -> None:
        for _ in range(5):
            train()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    train()
    assert watched.n_steps() == before + 1


def test_a_thread_that_calls_during_a_step_makes_no_step_later(watched: Watched) -> None:
    """The step that goes on when another thread's calls become the noted ones leaves these alone."""
    goes_on, may_end = threading.Event(), threading.Event()

    def work() -> None:
        if threading.current_thread() is long:
            goes_on.set()
            may_end.wait(30)

    train = watched.function("train")(work)

    def steps_then_a_long_one() -> None:
        nonlocal long
        long = None
        watched.settled(train)
        long = threading.current_thread()
        train()

    long: Any = None
    thread = threading.Thread(target=steps_then_a_long_one)
    thread.start()
    assert goes_on.wait(30)
    before = watched.n_steps()
    train()
    may_end.set()
    thread.join()
    for _ in range(5):
        train()
    assert watched.n_steps() == before


def test_a_step_that_raises_is_a_step_and_the_next_one_too(watched: Watched) -> None:
    def work() -> None:
        if fails:
            raise KeyError("mine")

    fails = False
    train = watched.function("train")(work)
    watched.settled(train)
    before = watched.n_steps()
    fails = True
    with pytest.raises(KeyError, match="mine"):
        train()
    fails = False
    train()
    assert watched.n_steps() == before + 2


def test_a_function_made_anew_at_every_step_is_the_same_step(watched: Watched) -> None:
    make = watched.function("train")
    watched.settled(lambda: make()())
    before = watched.n_steps()
    for _ in range(200):
        make()()
    assert watched.n_steps() == before + 200
    assert len(frameworks._noted) <= 1


def test_other_calls_of_a_step_are_only_noted_too(watched: Watched) -> None:
    batch = watched.function("next", "next")()
    train = watched.function("train")()
    metrics = watched.function("metrics")()

    def step() -> None:
        batch()
        train()
        metrics()

    watched.settled(step)
    for _ in range(20):
        step()
    assert watched.told == []


def test_a_loop_that_follows_is_found(watched: Watched) -> None:
    """Its calls are only noted at first: somebody has to see that the steps come no more."""
    first = watched.function("first")()
    second = watched.function("second")()

    def step() -> None:
        first(), second()

    watched.settled(step)
    until = time.monotonic() + 30
    while len(watched.records("step-key")) < 2 and time.monotonic() < until:
        second()
        time.sleep(0.001)
    assert [it[3] for it in watched.records("step-key")] == ["first", "second"]
    for _ in range(100):
        second()
    before = watched.n_steps()
    watched.told.clear()
    second()
    assert watched.n_steps() == before + 1 and watched.told == []


def test_nobody_is_told_when_it_is_over(watched: Watched) -> None:
    train = watched.function("train")()
    watched.settled(train)
    _capture.end(watched.engine)
    before = list(watched.engine.steps)
    train()
    assert watched.engine.steps == before and watched.told == []


FORK = """
import os, sys
from pathlib import Path
from test_noting import Watched

watched = Watched(Path(sys.argv[1]), capture=False)
train = watched.function("train")()
watched.settled(train)
child = os.fork()
if child == 0:
    train()
    os._exit(0 if len(watched.engine.steps) == 1 and not watched.told else 1)
assert os.waitpid(child, 0)[1] == 0, "the child noted its parent's steps"
before = watched.n_steps()
train()
assert watched.n_steps() == before + 1
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_notes_nothing(tmp_path: Path) -> None:
    # In a process of its own: other tests have started frameworks in this one.
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", FORK, str(tmp_path)]
    subprocess.run(command, env=here, timeout=60, check=True)


def windows(watched: Watched) -> list[tuple[str, str]]:
    said = watched.records("said")
    return [(what, text) for _, _, what, text in said if what in ("window-start", "window-end")]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    it = Clock()
    for module in (_capture, frameworks, log):
        monkeypatch.setattr(module, "time_ns", lambda: it.now_ns)
    return it


class Clock:
    """Goes on by itself only when a step works: what depends on time is the same every time."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000
        self.step_ns = 1_000_000
        self.looked_ns = 0

    def work(self) -> None:
        self.now_ns += self.step_ns

    def steps(self, watched: Watched, train: Callable[[], Any], until: Callable[[], bool]) -> int:
        """How many steps it takes, beside which somebody looks now and then as in a real process."""
        for n in range(1, 100_000):
            train()
            if self.now_ns - self.looked_ns > _capture.MIND_SECONDS * 1e9:
                self.looked_ns = self.now_ns
                watched.engine._look_at_time()
            if until():
                return n
        raise AssertionError("it never came to that")


def test_steps_are_only_noted_until_an_asked_window_is_near(tmp_path: Path, clock: Clock) -> None:
    watched = Watched(tmp_path, is_minded=False, warmup=2500, steps=10, stacks=False)
    engine = watched.engine
    train = watched.function("train")(clock.work)
    assert clock.steps(watched, train, lambda: engine.state == "capturing") == 2501
    # Told at first, and again from 0.75 s before the window on, give or take a look.
    assert 500 < len(watched.told) < 1100
    clock.steps(watched, train, lambda: engine.state == "watching")
    assert [what for what, _ in windows(watched)] == ["window-start", "window-end"]
    assert windows(watched)[1] == ("window-end", "11 steps")
    at = next(it[1] for it in watched.records("said") if it[2] == "window-start")
    assert sum(it[1] <= at for it in watched.records("step")) == 2501
    _capture.end(engine)


def test_another_pace_after_the_window_makes_another_window(tmp_path: Path, clock: Clock) -> None:
    watched = Watched(tmp_path, is_minded=False, seconds=0.1, stacks=False)
    engine = watched.engine
    train = watched.function("train")(clock.work)
    clock.steps(watched, train, lambda: engine.windows == 1 and engine.state == "watching")
    clock.step_ns *= 3
    clock.steps(watched, train, lambda: engine.windows == 2 and engine.state == "watching")
    said = windows(watched)
    assert [what for what, _ in said] == ["window-start", "window-end"] * 2
    assert said[2][1].startswith("the pace went from 1.0 ms to 3.0 ms")
    # This one holds: nothing is decided any more.
    clock.steps(watched, train, lambda: engine.windows == _capture.MOST_WINDOWS)
    watched.told.clear()
    for _ in range(20):
        train()
    assert watched.told == []
    _capture.end(engine)
    assert len(windows(watched)) == 4


def test_steps_of_the_window_are_not_the_pace_after_it(tmp_path: Path, clock: Clock) -> None:
    """Saving takes a while, in which somebody looks beside the loop."""
    watched = Watched(tmp_path, is_minded=False, seconds=3, stacks=False)
    engine = watched.engine
    profiler = engine.frameworks["test"]
    stop = profiler.stop

    def stops_slowly(save: bool) -> None:
        engine._look_at_time()
        stop(save)

    profiler.stop = stops_slowly
    train = watched.function("train")(clock.work)
    clock.steps(watched, train, lambda: engine.state == "capturing")
    clock.step_ns = 2_000_000
    clock.steps(watched, train, lambda: engine.state == "watching")
    assert engine.wanted is None
    _capture.end(engine)


def test_an_evaluation_is_not_the_loop_that_follows(tmp_path: Path, clock: Clock) -> None:
    watched = Watched(tmp_path, is_minded=False, seconds=0.1, stacks=False)
    train = watched.function("train")(clock.work)
    evaluate = watched.function("evaluate")(clock.work)
    engine = watched.engine
    clock.steps(watched, train, lambda: engine.windows == 1 and engine.state == "watching")

    def for_so_long(function: Function, seconds: int) -> int:
        until_ns = clock.now_ns + seconds * 1_000_000_000
        return clock.steps(watched, function, lambda: clock.now_ns >= until_ns)

    before = engine.log.n_steps()
    trained = 0
    for _ in range(3):
        trained += for_so_long(train, 9)
        for_so_long(evaluate, 3)
    assert engine.log.n_steps() == before + trained
    assert [it[3] for it in watched.records("step-key")] == ["train"]
    # Whatever goes on for longer than the training did is no evaluation.
    for_so_long(evaluate, 40)
    assert [it[3] for it in watched.records("step-key")] == ["train", "evaluate"]
    _capture.end(engine)


def test_only_batches_that_a_step_took_are_counted(tmp_path: Path, clock: Clock) -> None:
    # In a window that does not end, so that every call is told.
    watched = Watched(tmp_path, is_minded=False, stacks=False, warmup=5, steps=100_000)
    train = watched.function("train")(clock.work)
    evaluate = watched.function("evaluate")(clock.work)

    class Batch:
        def __init__(self, n: int) -> None:
            self.shape = (n, 3)

    def next_batch(n: int) -> Callable[..., None]:
        it = watched.function("next", "next")()

        def give(is_looked_at: bool) -> None:
            it()
            watched.engine.batches = 0 if is_looked_at else 1
            _capture.relay.batch(Batch(n))

        return give

    to_train, to_evaluate = next_batch(32), next_batch(48)
    for _ in range(20):
        for at in range(9):
            to_train(at > 4), train()
        for _ in range(2):
            to_evaluate(True), evaluate()
    _capture.end(watched.engine)
    seen = [it[1] for it in watched.records("examples")]
    assert len(seen) > 50 and set(seen) == {32}


@pytest.mark.parametrize("step_ns", [100_000, 1_000_000, 30_000_000])
def test_a_pace_that_holds_is_found_to_hold(tmp_path: Path, clock: Clock, step_ns: int) -> None:
    """However short the steps are: of these there are thousands in the seconds that are looked at."""
    clock.step_ns = step_ns
    watched = Watched(tmp_path, is_minded=False, seconds=0.1, stacks=False)
    engine = watched.engine
    train = watched.function("train")(clock.work)
    clock.steps(watched, train, lambda: engine.windows == 1 and engine.state == "watching")
    clock.steps(watched, train, lambda: engine.windows == _capture.MOST_WINDOWS)
    _capture.end(engine)
    assert len(windows(watched)) == 2


def test_a_window_that_is_wanted_waits_for_the_program_s_own(tmp_path: Path, clock: Clock) -> None:
    watched = Watched(tmp_path, is_minded=False, seconds=0.1, stacks=False)
    engine = watched.engine
    train = watched.function("train")(clock.work)
    clock.steps(watched, train, lambda: engine.windows == 1 and engine.state == "watching")
    clock.step_ns *= 3
    engine.yields_to_user("test", "elsewhere")
    clock.steps(watched, train, lambda: engine.wanted is not None)
    watched.told.clear()
    clock.steps(watched, train, lambda: clock.now_ns > 20_000_000_000)
    assert engine.windows == 1 and len(watched.told) <= 1
    engine.user_is_done()
    clock.steps(watched, train, lambda: engine.windows == 2 and engine.state == "watching")
    _capture.end(engine)


def made_for(inner: Callable[..., Any], number: int = 0) -> Callable[..., Any]:
    """As libraries do: what is called is the same, what it calls is not."""

    @functools.wraps(inner)
    def one(*args: Any) -> Any:
        return inner(*args), number

    def several(*args: Any) -> Any:
        return one(*args)

    return several


def test_functions_of_the_same_text_are_told_apart_by_what_they_call() -> None:
    def key(function: Any) -> frameworks.Key:
        return frameworks._identity("test", function, function).key

    class Model:
        def train(self) -> None: ...
        def test(self) -> None: ...

    a, b = Model(), Model()
    assert key(made_for(a.train)) != key(made_for(a.test))
    assert key(made_for(functools.partial(a.train))) != key(made_for(functools.partial(a.test)))
    # Made anew, for another model or with another number: the same.
    assert key(made_for(a.train)) == key(made_for(b.train, 7))
    hash(key(made_for(a.train)))

    def calls_itself() -> None:
        calls_itself()

    assert key(calls_itself) == key(calls_itself)


def test_a_function_that_answers_no_questions_is_known_by_its_number() -> None:
    class Touchy:
        def __getattr__(self, name: str) -> Any:
            raise ValueError(name)

        def __call__(self) -> None: ...

    a, b = Touchy(), Touchy()
    keys = [frameworks._identity("test", it, it).key for it in (a, a, b)]
    assert keys[0] == keys[1] != keys[2]

    # Also where only something that it holds on to does not answer.
    class Slotted:
        __slots__ = ("_python_function",)

        def __getattr__(self, name: str) -> Any:
            raise ValueError(name)

    held = Slotted()

    def holds() -> Any:
        return held

    assert frameworks._identity("test", holds, holds).key[2] == id(holds)


def test_what_died_is_forgotten_before_its_number_is_given_again() -> None:
    known = frameworks._Known(lambda it: frameworks.Called(("test", "function", it.work), "f"))
    for n in range(100):
        it = Function(n)  # type: ignore[arg-type]
        called = known.find(id(it)) or known.learn(it)
        assert called.key[2] == n
        assert known.find(id(it)) is called
        del it
    assert len(known._living) == len(known._found) == 0


def test_what_cannot_be_watched_over_is_looked_at_each_time() -> None:
    known = frameworks._Known(lambda it: frameworks.Called(("test", "function", it), "f"))
    assert known.learn(7).key[2] == 7
    assert known.find(id(7)) is None


def test_a_long_run_is_thinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "EACH_STEP", 10)
    it = log.Log(str(tmp_path))
    second = 1_000_000_000
    it.steps.extend(range(second, second * 11, second // 100))
    it.flush()
    records = [json.loads(line) for line in Path(it.path).read_text().splitlines()[1:]]
    # The first ten, then one every tenth of a second; the count is that of all.
    assert len(records) == 10 + 99
    assert [it[2] for it in records[:12]] == [*range(1, 11), 20, 30]
    assert it.n_steps() == 1000
    it.steps.append(second * 20)
    it.write("examples", 4)
    it.flush()
    last = Path(it.path).read_text().splitlines()[-2:]
    assert [json.loads(line) for line in last] == [["step", second * 20, 1001], ["examples", 4]]


def test_moved_on_counts_calls_since_the_last_step() -> None:
    it = steps.Candidate("function", "f")
    for at in range(5):
        it.begins(at, 100)
    assert it.since_step == 5
    it.begins(6, 200)
    assert it.since_step == 1
