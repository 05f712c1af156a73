"""The file a process leaves in the run folder: lines of JSON, described in docs/run-folder.md."""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import threading
import time
from typing import Any, Optional


class Log:
    """Appends records; they are written out about twice a second, and when the process ends.

    The file appears with the first record: most processes of a run have nothing to say.
    """

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "python-%d.jsonl" % os.getpid())
        self._lines: list[str] = []
        self._file: Optional[int] = None
        self._lock = threading.Lock()

    def write(self, *record: Any) -> None:
        self._lines.append(json.dumps(record, separators=(",", ":")))

    def said(self, what: str, text: str) -> None:
        """Notes a decision and its reason."""
        self.write("said", time.time_ns(), what, text)

    def step(self, at_ns: int, count: int) -> None:
        # The one record that is written at every step: no encoder is needed for two integers.
        self._lines.append('["step",%d,%d]' % (at_ns, count))

    def flush(self) -> None:
        with self._lock:
            if not self._lines:
                return
            if self._file is None:
                # A process that replaced itself by another program has the same number.
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
                self._file = os.open(self.path, flags, 0o644)
                if os.fstat(self._file).st_size == 0:
                    self._lines.insert(0, json.dumps(_header()))
            lines, self._lines = self._lines, []
            data = ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
            while data:
                data = data[os.write(self._file, data) :]

    def forget(self) -> None:
        """In a forked child: these records are the parent's."""
        self._lines = []
        self._lock = threading.Lock()
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
