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
from threading import get_ident
from time import time_ns
from typing import Any, Callable, Optional

from . import sites, steps
from .frameworks import FRAMEWORKS, After, Called, Key, examples_of, only_note, tell_again
from .log import MOST_RECENT, Log
from .stacks import Stacks

# How often records are written out, and limits looked at.
MIND_SECONDS = 0.25
# Whatever calls there are, without a step for so long a framework is captured by time.
NO_STEP_SECONDS = 20.0
# Stacks are sampled from the first call on, for so long: a program may end before its steps are
# steady. Later only a window's are.
EARLY_SECONDS = 30.0
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
        self.sites = sites.Sites(self.log)
        self.frameworks: dict[str, Any] = {}
        self.dead = False
        self.lock = threading.RLock()
        self.armed_at = time.monotonic()
        # Searching for what a step is.
        self.candidates: dict[tuple[Key, int], steps.Candidate] = {}
        self.began: dict[tuple[Key, int], int] = {}
        self.called_ns = 0
        # Since when stacks are sampled, before any window.
        self.early_since: Optional[float] = None
        # What begins a step, and on which thread.
        self.key: Optional[Key] = None
        self.thread = 0
        self.loop_since_ns = 0
        # Who calls its steps was not noted yet.
        self.loop_is_new = False
        # Steps of the chosen kind.
        self.steps = self.log.steps
        # Batches seen, and how many examples one had, until a step begins that it is for.
        self.batches = 0
        self.examples: Optional[int] = None
        # No step is waited for: calls are only noted, on the shortest way.
        self.only_notes = False
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
        # Since when steps are of one pace, as far as is known: of this loop, after the last window.
        self.pace_since_ns = 0
        # Why another window is wanted.
        self.wanted: Optional[str] = None
        self.handler_before: Any = None
        self.minder: Optional[threading.Thread] = None
        # How to end what was begun for this one alone.
        self.undo: list[Callable[[], None]] = []

    # What frameworks tell. These run inside the user's loop: they must be quick and never raise.

    def begins(self, called: Called) -> After:
        """A call begins; answers what is to be done when it has ended."""
        if self.dead:
            return None
        try:
            now = time_ns()
            thread = get_ident()
            if called.key != self.key or thread != self.thread:
                return self._other(now, called, thread)
            self.steps.append(now)
            if self.loop_is_new:
                self.loop_is_new = False
                self.sites.step(sys._getframe(1))
            if self.examples is not None:
                self.log.write("examples", self.examples)
                self.examples = None
            self._decide(now)
            if self.only_notes:
                return self._only_note_steps
        except Exception as error:
            self._fail(error)
        return None

    def _ends(self, called: Called) -> None:
        if self.dead or self.key is not None:
            return
        try:
            it = (called.key, get_ident())
            began = self.began.pop(it, None)
            if began is not None:
                self.called_ns = time_ns()
                self.candidates[it].ends(began, self.called_ns)
        except Exception as error:
            self._fail(error)

    def _only_note_steps(self, called: Called) -> None:
        if self.only_notes and not self.dead:
            only_note(called, self.steps.append)

    def _only_note_others(self, called: Called) -> None:
        candidate = self.candidates.get((called.key, get_ident()))
        if self.only_notes and not self.dead and candidate is not None:
            only_note(called, candidate.starts.append)

    def batch(self, batch: Any) -> None:
        # One look now and then: batches of one loop are alike.
        if self.dead or self.only_notes:
            return
        self.batches += 1
        if self.batches % 100 != 1:
            return
        try:
            self.examples = examples_of(batch)
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
                where = "" if folder is None else " into %s" % _absolute(folder)
                self.log.said("own-profiler", framework + where)
        except Exception as error:
            self._fail(error)

    def user_is_done(self) -> None:
        if self.user_profiles and not self.dead:
            try:
                self.log.said("own-profiler-end", "the program stopped its profiler")
            except Exception as error:
                self._fail(error)
        self.user_profiles = False

    # Steps.

    def _other(self, now: int, called: Called, thread: int) -> After:
        """A call that begins no step, as far as is known."""
        it = (called.key, thread)
        candidate = self.candidates.get(it)
        if candidate is None:
            if len(self.candidates) >= 256:
                return None
            candidate = self.candidates[it] = steps.Candidate(called.key[1], called.name)
            self._sample_early()
        candidate.begins(now, self.steps[-1])
        if self.key is None:
            self.began[it] = self.called_ns = now
            self._search(it)
            return self._ends if self.key is None else None
        if candidate.kind != "next":
            # The batch was for this.
            self.examples = None
        if candidate.since_step >= steps.MOVED_ON:
            self._maybe_moved_on(it, now)
        elif self.only_notes and candidate.since_step == 1:
            return self._only_note_others
        return None

    def _sample_early(self) -> None:
        wanted = self.settings.capture and self.settings.stacks
        if wanted and self.early_since is None and not self.windows:
            self.early_since = time.monotonic()
            self.stacks.early()

    def _look_at_others(self) -> None:
        """Steps that come no more while other calls do: these are to be told again."""
        last_ns = self.steps[-1]
        for it in tuple(self.candidates.values()):
            since_step = sum(at_ns > last_ns for at_ns in it.starts.copy())
            if since_step >= steps.MOVED_ON:
                tell_again()
                return

    def _search(self, called: tuple[Key, int]) -> None:
        chosen = steps.choose(self.candidates)
        if chosen is None:
            return
        self._take_as_step(chosen)
        if self.state == "capturing" and self.by_time:
            # What it holds of steps is their beginning.
            self._close("steps have begun")
        if self.state == "searching":
            self.state = "warming"
            if self.settings.capture and self.settings.stacks and self.early_since is None:
                self.stacks.soon()
        if chosen == called and self.state == "warming":
            self._warm()

    def _take_as_step(self, chosen: tuple[Key, int]) -> None:
        it = self.candidates[chosen]
        self.key, self.thread = chosen
        self.loop_is_new = True
        self.began.clear()
        starts = list(it.starts)
        self.log.write("step-key", starts[0], it.kind, it.name, threading.get_native_id())
        self.log.steps_before(it.calls - len(starts))
        self.steps.extend(starts)
        self.pace_since_ns = self.loop_since_ns = starts[0]

    def _maybe_moved_on(self, called: tuple[Key, int], now: int) -> None:
        """Something else repeats, not the step: an evaluation, another phase, a new loop."""
        durations = self.log.durations(self.pace_since_ns, 20)
        patience_ns = 5 * steps.median(durations) if durations else 0
        if self.windows:
            # No hurry: an evaluation is shorter than the training before it, which comes back.
            trained_ns = self.steps[-1] - self.loop_since_ns
            patience_ns = max(patience_ns, min(trained_ns, steps.LONGEST_EVALUATION_NS))
        if self.state == "capturing" or now - self.steps[-1] < patience_ns:
            return
        # The batches of both are asked for in the same way, so only calls of the same rank or a
        # higher one count.
        old = self.candidates.get((self.key, self.thread)) if self.key else None
        it = self.candidates[called]
        if old is not None and steps.RANK.get(it.kind, 0) < steps.RANK.get(old.kind, 0):
            return
        # From here on only: its earlier calls may lie hours back.
        again = steps.Candidate(it.kind, it.name)
        again.begins(now, self.steps[-1])
        self.candidates = {called: again}
        self.key = None
        self.only_notes = False
        tell_again()
        self.state = "searching" if self.windows == 0 else self.state

    def _decide(self, now: int) -> None:
        """A step began: is a window to be opened, or closed? And is the next one waited for?"""
        if self.state == "capturing":
            self.window_steps += 1
            self._maybe_close(now)
        elif self.state == "warming":
            self._warm()
        elif self.wanted is not None and not self.user_profiles:
            reason, self.wanted = self.wanted, None
            self._open(reason)
        self.only_notes = not self._window_is_near()

    def _warm(self) -> None:
        asked = self.settings
        if not asked.capture or self.user_profiles:
            return
        if asked.warmup is not None:
            if self.log.n_steps() > asked.warmup:
                self._open("%d steps of warm-up" % asked.warmup)
            return
        reason = steps.steady(self.log.durations(self.pace_since_ns, 1000))
        if reason is not None:
            self._open(reason)

    def _window_is_near(self) -> bool:
        """Whether one of the next steps may open or close one, sooner than somebody looks again."""
        asked = self.settings
        if self.state == "watching":
            return self.wanted is not None and not self.user_profiles
        if self.state == "warming" and not asked.capture:
            return False
        if self.state != "warming" or asked.warmup is None:
            return True
        durations = self.log.durations(self.pace_since_ns, 20)
        if not durations:
            return True
        ahead = asked.warmup - self.log.n_steps()
        return ahead * steps.median(durations) < 3 * MIND_SECONDS * 1e9

    def _watch(self) -> None:
        """After a window: was it of the pace that the run keeps?"""
        if self.windows >= MOST_WINDOWS or self.wanted is not None:
            return
        if self.settings.warmup is not None or self.settings.steps is not None:
            self.windows = MOST_WINDOWS
            return
        after = self.log.durations(self.pace_since_ns, MOST_RECENT)
        if any(it > self.pause_ns for it in after):
            self.windows = MOST_WINDOWS
            return
        if len(after) < 20 or self.steps[-1] - self.pace_since_ns < 2_000_000_000:
            return
        # The last half, so that what the profiler's end disturbed is over.
        recent = after[len(after) // 2 :]
        before = self.pace_before
        if not before or (steps.same_pace(recent, before) and len(after) >= 100):
            # It holds.
            self.windows = MOST_WINDOWS
        elif not steps.same_pace(recent, before):
            paces = tuple(steps.in_words(steps.median(it)) for it in (before, recent))
            self.wanted = "the pace went from %s to %s" % paces

    # The window.

    def _framework(self) -> Any:
        """Whose profiler: of those imported, the one whose calls make the steps."""
        if self.key is not None and self.key[0] in self.frameworks:
            return self.frameworks[self.key[0]]
        # Steps that the program says itself, or none: who computes is called most.
        calls = dict.fromkeys((it for it in FRAMEWORKS if it in self.frameworks), 0)
        for (key, _), it in self.candidates.items():
            if key[0] in calls and it.kind != "next":
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
                self.pace_since_ns = time_ns()
                self.user_profiles = False
                return
            self.profiler = framework
            self.windows += 1
            self.by_time = self.key is None
            self.window_steps = 0
            self.window_rss = _resident_bytes()
            self.pace_before = self.log.durations(self.pace_since_ns, 50)
            usual = steps.median(self.pace_before) if self.pace_before else 0
            self.pause_ns = max(steps.PAUSE * usual, steps.SHORTEST_PAUSE_NS)
            self.state = "capturing"
            self._catch_sigterm()
            took = time.monotonic() - began
            self.log.said("window-start", "%s; the profiler took %.3f s to start" % (reason, took))
            self.window_ns = time_ns()
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
            # Who looks beside the loop meanwhile is not to judge by steps of the window.
            self.pace_since_ns = time_ns()
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
            self.pace_since_ns = time_ns()
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
                self.sites.write_out()
                self.log.flush()
            except Exception as error:
                self._fail(error)

    def _look_at_time(self) -> None:
        if self.state == "watching":
            self._watch()
        if self.early_since is not None and self.state in ("searching", "warming"):
            if time.monotonic() - self.early_since > EARLY_SECONDS:
                self.early_since = float("inf")
                self.stacks.soon()
        self.only_notes = self.only_notes and not self._window_is_near()
        if self.only_notes:
            self._look_at_others()
        else:
            # Each time: a thread may have been about to note.
            tell_again()
        if self.state == "capturing":
            seconds = (time_ns() - self.window_ns) / 1e9
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
        quiet = (time_ns() - self.called_ns) / 1e9
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
            self.stacks.stop()
            is_late = self.key is None and self.log.n_steps() == 0
            if is_late:
                self._choose_at_the_end()
            # Chosen at the end, the last record is where the last step ends.
            count = max(0, self.log.n_steps() - is_late)
            if count == 0 and self.candidates and _is_the_program():
                self.log.said("none", "no training step was repeated")
            elif not self.windows and self.settings.capture and count:
                said = "the program ended after %d steps, before they were steady" % count
                self.log.said("none", said)
            self.sites.write_out()
            self.log.flush()
        except Exception as error:
            self._fail(error)

    def _choose_at_the_end(self) -> None:
        """What a program that ended soon did again and again, if only twice."""
        chosen = steps.choose(self.candidates, steps.FEWEST_AT_END)
        if chosen is not None:
            self._take_as_step(chosen)
            # The last one ends here, as nearly as can be told.
            self.steps.append(max(self.called_ns, self.steps[-1]))

    def forked(self) -> None:
        """In a forked child: the profiler, its window and its file are the parent's."""
        self.dead = True
        tell_again()
        self.log.forget()
        self.sites.forget()
        self.stacks.forget()
        self.lock = threading.RLock()

    def _fail(self, error: Exception) -> None:
        self.dead = True
        tell_again()
        try:
            self.log.said("failed", "%s: %s" % (type(error).__name__, error))
            profiler, self.profiler = self.profiler, None
            if profiler is not None:
                # A profiler that nobody stops slows the run and fills its memory.
                profiler.stop(True)
            self.log.flush()
        except Exception:
            pass


def _absolute(folder: Any) -> str:
    """Where the program's folder is for whoever looks from elsewhere."""
    is_path = isinstance(folder, (bytes, os.PathLike))
    name: str = os.fsdecode(folder) if is_path else str(folder)
    return name if "://" in name else os.path.abspath(name)


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
    begins: Callable[[Called], After]
    batch: Callable[..., None]
    yields_to_user: Callable[..., None]
    user_is_done: Callable[..., None]

    def __init__(self) -> None:
        self.stop()

    def listen(self, engine: Engine) -> None:
        self.engine = engine
        self.begins = engine.begins
        self.batch = engine.batch
        self.yields_to_user = engine.yields_to_user
        self.user_is_done = engine.user_is_done
        sites.listen(engine.sites)

    def stop(self) -> None:
        self.engine = None
        sites.listen(None)
        self.begins = self.batch = _nothing
        self.yields_to_user = self.user_is_done = _nothing


def _nothing(*_: Any) -> None:
    return None


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
    tell_again()
    atexit.unregister(engine.exiting)
    for undo in engine.undo:
        undo()
    if relay.engine is engine:
        relay.stop()


def watch_library(name: str) -> None:
    """Notes where a library's things are made, once its import has ended."""
    engine, module = relay.engine, sys.modules.get(name)
    # While Keras is imported it imports a framework, and has nothing to show yet.
    if engine is None or name in _watched or not hasattr(module, "Model"):
        return
    _watched[name] = module
    try:
        sites.LIBRARIES[name](module)
    except Exception as error:
        engine.log.said("not-watched", "%s: %s: %s" % (name, type(error).__name__, error))


def framework_imported(name: str) -> None:
    """Called by the hook when a framework's import has ended, or that of a library."""
    if name in sites.LIBRARIES:
        watch_library(name)
        return
    if relay.engine is None:
        folder = os.environ["STROBE_RUN_FOLDER"]
        hook = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with open(os.path.join(hook, "settings.json")) as file:
            settings = Settings(json.load(file))
        begin(folder, settings, hook)
    watch(name)
    for library in sites.LIBRARIES:
        watch_library(library)


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
