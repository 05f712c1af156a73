"""Where Python is: the stacks of all threads, a hundred times a second while a window is open.

TensorFlow's own Python tracer records nothing on a CPU, and JAX's slows every call down; a sample
now and then tells the line that holds a step and costs next to nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Optional

from .log import Log

EVERY_SECONDS = 0.01
# So long somebody outside may take to be ready.
GRACE_SECONDS = 0.3
# Deeper than any training loop; a runaway recursion must not make a sample expensive.
DEEPEST = 128

_OURS = os.path.dirname(os.path.abspath(__file__))

# The operating system's number of threads that Python's own `threading` does not know: those a
# framework started. They tell it when they enter Python.
native_ids: dict[int, int] = {}


def this_thread_is_native() -> None:
    ident = threading.get_ident()
    if ident not in native_ids:
        native_ids[ident] = threading.get_native_id()


class Stacks:
    """Sampled from outside where somebody does that, otherwise by a thread in here.

    A thread in here waits for Python's lock, and so sees others only where they let go of it.
    """

    def __init__(self, log: Log, hook: Optional[str]) -> None:
        self._log = log
        self._asks = self._outside = None
        if hook is not None:
            self._asks = os.path.join(hook, "stacks-%d" % os.getpid())
            self._outside = os.path.join(hook, "outside-%d" % os.getpid())
        self._frames: dict[CodeType, int] = {}
        self._nodes: dict[tuple[Optional[int], int, int], int] = {}
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def soon(self) -> None:
        """Finding the interpreter from outside takes a moment."""
        self._ask("soon")

    def early(self) -> None:
        """From outside, before any window: a short program may never have one."""
        self._ask("now")

    def _ask(self, when: str) -> None:
        if self._asks is None:
            return
        try:
            with open(self._asks + ".part", "w") as file:
                file.write(when)
            os.replace(self._asks + ".part", self._asks)
        except OSError:
            self._asks = None

    def start(self) -> None:
        self._ask("now")
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="stroboscope", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._asks is not None:
            try:
                os.unlink(self._asks)
            except OSError:
                pass

    def forget(self) -> None:
        """In a forked child: what was asked for is the parent's."""
        self._asks = None
        self._stop.set()

    def _is_outside(self) -> bool:
        return self._outside is not None and os.path.exists(self._outside)

    def _run(self) -> None:
        me = threading.get_ident()
        if self._asks is not None:
            self._stop.wait(GRACE_SECONDS)
            if self._is_outside():
                return
        nth = 0
        # Not at equal distances: steps have a rhythm too, of which the same part would be seen.
        while not self._stop.wait(EVERY_SECONDS * (0.5 + nth * 0.618033988749895 % 1)):
            nth += 1
            try:
                self._sample(me)
            except Exception as error:
                self._log.said("failed", "stacks: %s: %s" % (type(error).__name__, error))
                return

    def _sample(self, me: int) -> None:
        now = time.time_ns()
        known = {it.ident: it.native_id for it in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident == me:
                continue
            node = self._node(frame)
            if node is not None:
                thread = known.get(ident) or native_ids.get(ident) or 0
                self._log.write("sample", now, thread, node)

    def _node(self, innermost: FrameType) -> Optional[int]:
        """The place of a frame in the tree of stacks, outermost first."""
        frames: list[FrameType] = []
        frame: Optional[FrameType] = innermost
        while frame is not None and len(frames) < DEEPEST:
            if not frame.f_code.co_filename.startswith(_OURS):
                frames.append(frame)
            frame = frame.f_back
        node: Optional[int] = None
        for frame in reversed(frames):
            line = frame.f_lineno
            key = (node, self._frame(frame.f_code), 0 if line is None else line)
            known = self._nodes.get(key)
            if known is None:
                known = self._nodes[key] = len(self._nodes)
                self._log.write("node", known, *key)
            node = known
        return node

    def _frame(self, code: CodeType) -> int:
        known = self._frames.get(code)
        if known is None:
            known = self._frames[code] = len(self._frames)
            name = getattr(code, "co_qualname", code.co_name)
            self._log.write("frame", known, code.co_filename, name, code.co_firstlineno)
        return known
