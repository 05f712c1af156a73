"""Captures a few steady steps of a training run, from inside its process.

Loaded in front of a program by `strobe run`, once a framework has been imported. It watches for
the calls of a training loop, waits until steps are steady, turns the framework's own profiler on
for some of them, and writes down when each step of the whole run began.

```text
searching ──a call repeats──▶ warming ──steady──▶ capturing ──enough──▶ watching
                                 ▲                                         │
                                 └────────── the pace is another ──────────┘
```

Whatever goes wrong in here is written down and ends the watching, never the training.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import sys
import threading
import time
from typing import Any, Callable, Hashable, Optional

from . import steps
from .frameworks import FRAMEWORKS, examples_of
from .log import Log
from .stacks import Stacks

# Steps are written one by one until here; later one record stands for all of a tenth of a second.
EACH_STEP = 20_000
THINNED_NS = 100_000_000
# How often records are written out, and limits looked at.
MIND_SECONDS = 0.25
# Whatever calls there are, without a step for so long a framework is captured by time.
NO_STEP_SECONDS = 20.0
# Windows are taken anew where the pace after one differs from the pace before it.
MOST_WINDOWS = 3


class Settings:
    """What `strobe run` was asked for."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.capture = bool(values.get("capture", True))
        self.steps: Optional[int] = values.get("steps")
        self.warmup: Optional[int] = values.get("warmup")
        self.seconds = float(values.get("seconds", 2.0))
        self.max_seconds = float(values.get("max_seconds", 30.0))
        self.max_bytes = int(values.get("max_bytes", 2 << 30))
        self.stacks = bool(values.get("stacks", True))
        self.stop_after = bool(values.get("stop_after", False))
        # A framework without a call for so long is captured by time.
        self.no_step_seconds = float(values.get("no_step_seconds", NO_STEP_SECONDS))

    @property
    def fewest_steps(self) -> int:
        return 10 if self.steps is None else self.steps


class Engine:
    """One process being watched."""

    def __init__(self, folder: str, settings: Settings, hook: Optional[str] = None) -> None:
        self.folder = folder
        self.settings = settings
        self.log = Log(folder)
        self.stacks = Stacks(self.log, hook)
        self.frameworks: dict[str, Any] = {}
        self.dead = False
        self.lock = threading.RLock()
        self.armed_at = time.monotonic()
        # Searching for what a step is.
        self.candidates: dict[Hashable, steps.Candidate] = {}
        self.key: Optional[Hashable] = None
        self.began: dict[Hashable, int] = {}
        self.called_ns = 0
        # Steps of the chosen kind.
        self.count = 0
        self.last_ns = 0
        self.written_ns = 0
        self.examples_written = 0
        self.durations: list[int] = []
        # The window.
        self.state = "searching"
        self.profiler: Any = None
        self.user_profiles = False
        self.windows = 0
        self.by_time = False
        self.window_steps = 0
        self.window_ns = 0
        self.window_rss = 0
        self.pace_before: list[int] = []
        self.pause_ns = 0
        self.handler_before: Any = None
        self.minder: Optional[threading.Thread] = None
        # How to end what was begun for this one alone.
        self.undo: list[Callable[[], None]] = []

    # What frameworks tell. These run inside the user's loop: they must be quick and never raise.

    def begins(self, owner: str, kind: str, key: Hashable, name: str) -> None:
        if self.dead:
            return
        try:
            now = time.time_ns()
            key = (owner, kind, key, threading.get_ident())
            if key == self.key:
                self._step(now)
                return
            candidate = self.candidates.get(key)
            if candidate is None:
                if len(self.candidates) >= 256:
                    return
                candidate = self.candidates[key] = steps.Candidate(kind, name)
            candidate.begins(now)
            if self.key is None:
                self.began[key] = self.called_ns = now
                self._search(key)
            elif candidate.since_step >= steps.MOVED_ON:
                self._maybe_moved_on(key, now)
        except Exception as error:
            self._fail(error)

    def ends(self, owner: str, kind: str, key: Hashable) -> None:
        if self.dead or self.key is not None:
            return
        try:
            key = (owner, kind, key, threading.get_ident())
            began = self.began.pop(key, None)
            if began is not None:
                self.called_ns = time.time_ns()
                self.candidates[key].ends(began, self.called_ns)
        except Exception as error:
            self._fail(error)

    def batch(self, batch: Any) -> None:
        # One look now and then: batches of one loop are alike.
        if self.dead or self.count < self.examples_written:
            return
        try:
            examples = examples_of(batch)
            self.examples_written = self.count + 100
            if examples is not None:
                self.log.write("examples", examples)
        except Exception as error:
            self._fail(error)

    def yields_to_user(self, framework: str, folder: Any) -> None:
        """The program turns the profiler on itself: there is only one, and it is the program's."""
        if self.dead:
            return
        try:
            with self.lock:
                self.user_profiles = True
                if self.state == "capturing":
                    self._close("the program started its own profiler")
                self.log.said("own-profiler", "%s into %s" % (framework, folder))
        except Exception as error:
            self._fail(error)

    def user_is_done(self) -> None:
        self.user_profiles = False

    # Steps.

    def _search(self, key: Hashable) -> None:
        chosen = steps.choose(self.candidates)
        if chosen is None:
            return
        it = self.candidates[chosen]
        self.key = chosen
        self.began.clear()
        starts = list(it.starts)
        self.log.write("step-key", starts[0], it.kind, it.name, threading.get_native_id())
        self.durations = [b - a for a, b in zip(starts, starts[1:])]
        self.count += it.calls - len(starts)
        for start in starts:
            self.count += 1
            self.log.step(start, self.count)
        self.last_ns = self.written_ns = starts[-1]
        self._forget_others()
        if self.state == "capturing" and self.by_time:
            # What it holds of steps is their beginning.
            self._close("steps have begun")
        if self.state == "searching":
            self.state = "warming"
            if self.settings.capture and self.settings.stacks:
                self.stacks.soon()
        if chosen == key and self.state == "warming":
            self._warm()

    def _forget_others(self) -> None:
        for it in self.candidates.values():
            it.since_step = 0

    def _maybe_moved_on(self, key: Hashable, now: int) -> None:
        """Something else repeats, and the step does not: an evaluation, another phase, a new loop."""
        typical = steps.median(self.durations[-20:]) if self.durations else 0
        if self.state == "capturing" or now - self.last_ns < 5 * typical:
            return
        # An evaluation of a loop that comes back is not its successor: the batches of both are
        # asked for in the same way, so only calls of the same rank or a higher one count.
        old = self.candidates.get(self.key)
        it = self.candidates[key]
        if old is not None and steps.RANK.get(it.kind, 0) < steps.RANK.get(old.kind, 0):
            return
        # From here on only: its earlier calls may lie hours back.
        again = self.candidates[key] = steps.Candidate(it.kind, it.name)
        again.begins(now)
        self.candidates = {key: again}
        self.key = None
        self.state = "searching" if self.windows == 0 else self.state

    def _step(self, now: int) -> None:
        duration = now - self.last_ns
        self.last_ns = now
        self.count += 1
        if self.count <= EACH_STEP or now - self.written_ns >= THINNED_NS:
            self.written_ns = now
            self.log.step(now, self.count)
        if self.count % 8 == 0:
            self._forget_others()
        state = self.state
        if state == "watching" and self.windows >= MOST_WINDOWS:
            return
        if state == "capturing":
            self.window_steps += 1
            self._maybe_close(now)
            return
        if state in ("warming", "watching"):
            self.durations.append(duration)
            if len(self.durations) > 400:
                del self.durations[:200]
            if state == "warming":
                self._warm()
            else:
                self._watch(duration)

    def _warm(self) -> None:
        if not self.settings.capture or self.user_profiles:
            return
        if self.settings.warmup is not None:
            reason = "%d steps of warm-up" % self.settings.warmup
            ready = self.count > self.settings.warmup
        else:
            said = steps.steady(self.durations)
            reason, ready = said or "", said is not None
        if ready:
            self._open(reason)

    def _watch(self, duration: int) -> None:
        """After a window: was it of the pace that the run keeps?"""
        if self.settings.warmup is not None or self.settings.steps is not None:
            return
        if duration > self.pause_ns:
            self.windows = MOST_WINDOWS
            return
        after = self.durations
        if len(after) % 10 or len(after) < 20 or sum(after) < 2_000_000_000:
            return
        # The last half, so that what the profiler's end disturbed is over.
        recent = after[len(after) // 2 :]
        before = self.pace_before
        if not before or (steps.same_pace(recent, before) and len(after) >= 100):
            # It holds: from here on, steps are only counted.
            self.windows = MOST_WINDOWS
        elif not steps.same_pace(recent, before):
            pace = (steps.median(before) / 1e6, steps.median(recent) / 1e6)
            self._open("the pace went from %.1f ms to %.1f ms" % pace)

    # The window.

    def _framework(self) -> Any:
        """Whose profiler: of those imported, the one whose calls make the steps."""
        if isinstance(self.key, tuple) and self.key[0] in self.frameworks:
            return self.frameworks[self.key[0]]
        # Steps that the program says itself, or none: who computes is called most.
        calls = dict.fromkeys((it for it in FRAMEWORKS if it in self.frameworks), 0)
        for key, it in self.candidates.items():
            if isinstance(key, tuple) and key[0] in calls and it.kind != "next":
                calls[key[0]] += it.calls
        return self.frameworks[max(calls, key=lambda it: calls[it])]

    def _open(self, reason: str) -> None:
        with self.lock:
            if self.state == "capturing" or self.dead:
                return
            framework = self._framework()
            folder = os.path.join(self.folder, "profile", str(os.getpid()))
            if self.windows:
                # The window before was of another pace; only one is kept.
                shutil.rmtree(folder, ignore_errors=True)
            began = time.monotonic()
            try:
                framework.start(folder)
            except Exception as error:
                # Mostly: somebody else's session is on. Later steps will ask again, not each one.
                self.log.said("busy", "%s: %s" % (type(error).__name__, error))
                self.durations = []
                self.user_profiles = False
                return
            self.profiler = framework
            self.windows += 1
            self.by_time = self.key is None
            self.window_steps = 0
            self.window_rss = _resident_bytes()
            self.pace_before = self.durations[-50:]
            usual = steps.median(self.pace_before) if self.pace_before else 0
            self.pause_ns = max(steps.PAUSE * usual, steps.SHORTEST_PAUSE_NS)
            self.state = "capturing"
            self._catch_sigterm()
            took = time.monotonic() - began
            self.log.said("window-start", "%s; the profiler took %.3f s to start" % (reason, took))
            self.last_ns = self.window_ns = time.time_ns()
            if self.settings.stacks:
                self.stacks.start()

    def _maybe_close(self, now: int) -> None:
        asked = self.settings
        seconds = (now - self.window_ns) / 1e9
        # One more than asked for: the last one's end is the beginning of the next.
        if self.window_steps > asked.fewest_steps:
            if asked.steps is not None or seconds >= asked.seconds:
                self._close("%d steps" % (self.window_steps))
                return
        if self.window_steps > 3 and seconds >= asked.max_seconds:
            self._close("%d steps, as long as a window may be" % self.window_steps)
        elif self.window_steps % 16 == 0 and _resident_bytes() - self.window_rss > asked.max_bytes:
            self._close("%d steps, as much memory as a window may take" % self.window_steps)

    def _close(self, reason: str) -> None:
        with self.lock:
            if self.state != "capturing":
                return
            self.state = "watching"
            if self.by_time:
                # Steps may begin late: after a long compilation, or on a busy machine.
                self.state = "searching" if self.key is None else "warming"
            self.stacks.stop()
            self.log.said("window-end", reason)
            began = time.monotonic()
            try:
                self.profiler.stop(True)
                took = time.monotonic() - began
                self.log.said("saved", "the profiler took %.3f s to save" % took)
            except Exception as error:
                self.log.said("failed", "%s: %s" % (type(error).__name__, error))
            self.profiler = None
            self._release_sigterm()
            self.durations = []
            self.last_ns = time.time_ns()
            self.log.flush()
            if self.settings.stop_after and self.state != "warming":
                self.log.said("done", "asked to end after the capture")
                self.log.flush()
                os.kill(os.getpid(), signal.SIGTERM)

    def _catch_sigterm(self) -> None:
        """While a window is open, being told to end must not lose it."""
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return

        def ended(number: int, frame: Any) -> None:
            self._close("the process was told to end")
            self.log.flush()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

        signal.signal(signal.SIGTERM, ended)
        self.handler_before = ended

    def _release_sigterm(self) -> None:
        ours, self.handler_before = self.handler_before, None
        if ours is None or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    # Beside the loop.

    def start_minding(self) -> None:
        if self.minder is None:
            self.minder = threading.Thread(target=self._mind, name="stroboscope", daemon=True)
            self.minder.start()

    def _mind(self) -> None:
        while not self.dead:
            time.sleep(MIND_SECONDS)
            try:
                self._look_at_time()
                self.log.flush()
            except Exception as error:
                self._fail(error)

    def _look_at_time(self) -> None:
        if self.state == "capturing":
            seconds = (time.time_ns() - self.window_ns) / 1e9
            limit = self.settings.max_seconds
            by_time = self.key is None
            if seconds > (self.settings.seconds if by_time else limit * 2):
                self._close("%.1f s, %d steps" % (seconds, self.window_steps))
        elif self.state == "searching" and self.settings.capture and not self.windows:
            waited = time.monotonic() - self.armed_at
            if self._no_step_will_come(waited) and _is_the_program():
                if self._another_steps():
                    # A launcher, as `torchrun`: it waits for those that train.
                    self.armed_at = time.monotonic()
                else:
                    self._open("no step was seen in %.0f s" % waited)

    def _no_step_will_come(self, waited: float) -> bool:
        if waited > NO_STEP_SECONDS:
            return True
        # The first call compiles, and may take longer than all later ones together.
        quiet = (time.time_ns() - self.called_ns) / 1e9
        return not self.began and min(waited, quiet) > self.settings.no_step_seconds

    def _another_steps(self) -> bool:
        """Whether another process of this run was seen to take steps."""
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if name.startswith("python-") and path != self.log.path:
                with open(path, "rb") as file:
                    # What counts as a step is said before anything that there is much of.
                    if b'\n["step-key"' in file.read(1 << 16):
                        return True
        return False

    def exiting(self) -> None:
        if self.dead:
            return
        try:
            if self.state == "capturing":
                self._close("the program ended")
            if self.count == 0 and _is_the_program():
                self.log.said("none", "no call came again often enough to be a step")
            elif not self.windows and self.settings.capture and self.count:
                self.log.said("none", "the program ended after %d steps, before a window" % self.count)
            self.log.flush()
        except Exception as error:
            self._fail(error)

    def forked(self) -> None:
        """In a forked child: the profiler, its window and its file are the parent's."""
        self.dead = True
        self.log.forget()
        self.stacks.forget()
        self.lock = threading.RLock()

    def _fail(self, error: Exception) -> None:
        self.dead = True
        try:
            self.log.said("failed", "%s: %s" % (type(error).__name__, error))
            profiler, self.profiler = self.profiler, None
            if profiler is not None:
                # A profiler that nobody stops slows the run and fills its memory.
                profiler.stop(True)
            self.log.flush()
        except Exception:
            pass


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _is_the_program() -> bool:
    """Whether this process is no worker that another one started."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    parent: Optional[Callable[[], Any]] = getattr(multiprocessing, "parent_process", None)
    return parent is None or parent() is None


class Relay:
    """Who is told of calls now. Functions are wrapped once; who listens may change."""

    engine: Optional[Engine]
    begins: Callable[..., None]
    ends: Callable[..., None]
    batch: Callable[..., None]
    yields_to_user: Callable[..., None]
    user_is_done: Callable[..., None]

    def __init__(self) -> None:
        self.stop()

    def listen(self, engine: Engine) -> None:
        self.engine = engine
        self.begins = engine.begins
        self.ends = engine.ends
        self.batch = engine.batch
        self.yields_to_user = engine.yields_to_user
        self.user_is_done = engine.user_is_done

    def stop(self) -> None:
        self.engine = None
        self.begins = self.ends = self.batch = _nothing
        self.yields_to_user = self.user_is_done = _nothing


def _nothing(*_: Any) -> None:
    pass


relay = Relay()
_watched: dict[str, Any] = {}


def watch(name: str, late: bool = False) -> None:
    """Tells whoever listens of the calls of a framework that is imported; `late`: a while ago."""
    engine = relay.engine
    framework = _watched.get(name)
    missing: list[str] = []
    if framework is None:
        framework = FRAMEWORKS[name](sys.modules[name])
        missing = framework.watch(relay)
        _watched[name] = framework
    if engine is not None and late and hasattr(framework, "watch_compiled"):
        try:
            engine.undo.append(framework.watch_compiled(relay))
        except Exception as error:
            missing.append("functions compiled before (%s)" % error)
    if engine is not None:
        engine.frameworks[name] = framework
        engine.log.write("framework", name, framework.version)
        if missing:
            engine.log.said("not-watched", "%s: %s" % (name, "; ".join(missing)))


def begin(folder: str, settings: Settings, hook: Optional[str] = None) -> Engine:
    """Starts to watch this process; `hook` is where whoever started it looks for requests."""
    engine = Engine(folder, settings, hook)
    relay.listen(engine)
    atexit.register(engine.exiting)
    _before_leaving()
    engine.start_minding()
    return engine


def end(engine: Engine) -> None:
    """Closes the window if one is open; nobody listens any more."""
    engine.exiting()
    engine.dead = True
    atexit.unregister(engine.exiting)
    for undo in engine.undo:
        undo()
    if relay.engine is engine:
        relay.stop()


def framework_imported(name: str) -> None:
    """Called by the hook when a framework's import has ended."""
    if relay.engine is None:
        folder = os.environ["STROBE_RUN_FOLDER"]
        hook = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with open(os.path.join(hook, "settings.json")) as file:
            settings = Settings(json.load(file))
        begin(folder, settings, hook)
    watch(name)


_leaves: Optional[Callable[[int], Any]] = None


def _before_leaving() -> None:
    """Programs that leave by `os._exit` run no exit handlers; forked ones are not watched."""
    global _leaves
    if _leaves is not None:
        return
    leave = _leaves = os._exit

    def leave_after_saving(status: int) -> None:
        if relay.engine is not None:
            relay.engine.exiting()
        leave(status)

    os._exit = leave_after_saving  # type: ignore[assignment]
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)


def _forked() -> None:
    if relay.engine is not None:
        relay.engine.forked()
    relay.stop()
