"""The file a process leaves in the run folder: lines of JSON, described in docs/run-folder.md."""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import threading
from collections import deque
from itertools import islice
from time import time_ns
from typing import Any, Optional

# Steps are written one by one until here; later one record stands for all of a tenth of a second.
EACH_STEP = 20_000
THINNED_NS = 100_000_000
# So many are remembered.
MOST_RECENT = 4096


class Log:
    """Appends records; they are written out a few times a second, and when the process ends.

    The file appears with the first record: most processes of a run have nothing to say.
    """

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "python-%d.jsonl" % os.getpid())
        #: When steps began: the last of which there is a record, or 0, then those without. They are
        #: put into words when something else is written: no step of the program waits for that.
        self.steps: list[int] = [0]
        self._recent: deque[int] = deque(maxlen=MOST_RECENT)
        self._n_told = 0
        self._thinned_ns = 0
        self._lines: list[str] = []
        self._file: Optional[int] = None
        # The handler of a signal may interrupt whoever holds them. The first is never held long,
        # as the program's steps wait for it; the second while the file is written.
        self._lock = threading.RLock()
        self._file_lock = threading.RLock()

    def write(self, *record: Any) -> None:
        with self._lock:
            self._tell_steps()
            self._lines.append(json.dumps(record, separators=(",", ":")))

    def said(self, what: str, text: str) -> None:
        """Notes a decision and its reason."""
        self.write("said", time_ns(), what, text)

    def n_steps(self) -> int:
        """How many steps have begun."""
        with self._lock:
            return self._n_told + len(self.steps) - 1

    def durations(self, since_ns: int, most: int) -> list[int]:
        """How long the last steps took, of those that began since then and have ended."""
        with self._lock:
            self._tell_steps()
            starts = list(islice(reversed(self._recent), most + 1))
        starts.reverse()
        return [b - a for a, b in zip(starts, starts[1:]) if a >= since_ns]

    def steps_before(self, n: int) -> None:
        """So many steps began of which nobody knows when."""
        with self._lock:
            self._tell_steps()
            self._n_told += n

    def _tell_steps(self) -> None:
        # More may come meanwhile, at the end.
        new = self.steps[1:]
        del self.steps[: len(new)]
        self._recent.extend(new)
        for at_ns in new:
            self._n_told += 1
            if self._n_told <= EACH_STEP or at_ns >= self._thinned_ns:
                self._thinned_ns = at_ns + THINNED_NS
                # No encoder is needed for two integers.
                self._lines.append('["step",%d,%d]' % (at_ns, self._n_told))

    def flush(self) -> None:
        with self._file_lock:
            with self._lock:
                self._tell_steps()
                lines, self._lines = self._lines, []
            if not lines:
                return
            if self._file is None:
                # A process that replaced itself by another program has the same number.
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                # Where there are links, nobody else's is followed.
                flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
                self._file = os.open(self.path, flags, 0o600)
                if os.fstat(self._file).st_size == 0:
                    lines.insert(0, json.dumps(_header()))
            data = ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
            while data:
                data = data[os.write(self._file, data) :]

    def forget(self) -> None:
        """In a forked child: these records are the parent's."""
        del self.steps[:-1]
        self._lines = []
        self._lock = threading.RLock()
        self._file_lock = threading.RLock()
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _header() -> dict[str, Any]:
    return {
        "strobe": "python",
        "version": 1,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "thread": threading.main_thread().native_id or os.getpid(),
        "python": platform.python_version(),
        "script": os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else "",
    }
