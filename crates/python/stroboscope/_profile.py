"""Captures from inside a program: `profile`, `step` and the Keras callback."""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Type, Union

from . import _capture
from ._capture.frameworks import FRAMEWORKS, Called

if TYPE_CHECKING:
    from . import Run

# Whoever opens a block trains in it: without a step after this long, none will be seen.
NO_STEP_SECONDS = 0.3


class profile:
    """Captures a few steady steps of the training loop inside a `with` block.

    Steps are found as `strobe run` finds them; `stroboscope.step()` at the beginning of each says
    it outright. The window opens once steps are steady, and closes after `steps` of them. Where no
    step is seen at once it opens by time: before Python 3.12, functions that JAX compiled before
    the block are not seen.

    >>> with stroboscope.profile() as capture:      # doctest: +SKIP
    ...     model.fit(dataset, epochs=1)
    >>> capture.load().findings                     # doctest: +SKIP

    Import the framework before. The block's own errors pass through unchanged, and errors in here
    never stop the training.
    """

    def __init__(
        self,
        out: Union[str, "os.PathLike[str]", None] = None,
        *,
        steps: Optional[int] = None,
        warmup: Optional[int] = None,
        stacks: bool = True,
        max_seconds: float = 30.0,
    ) -> None:
        self._out = None if out is None else os.fspath(out)
        self._settings = _capture.Settings(
            {
                "steps": steps,
                "warmup": warmup,
                "stacks": stacks,
                "max_seconds": max_seconds,
                "no_step_seconds": NO_STEP_SECONDS,
            }
        )
        self._engine: Optional[_capture.Engine] = None
        #: The run folder, once the block was entered.
        self.folder: str = ""

    def __enter__(self) -> "profile":
        if _engine() is not None:
            raise RuntimeError("this process is being captured already")
        imported = [it for it in FRAMEWORKS if it in sys.modules]
        if not imported:
            raise RuntimeError("import TensorFlow, JAX or PyTorch before profiling")
        self.folder = _new_folder(self._out)
        self._manifest: dict[str, Any] = _manifest()
        self._write_manifest()
        self._engine = _capture.begin(self.folder, self._settings)
        for name in imported:
            _capture.watch(name, late=True)
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            _capture.end(engine)
            self._manifest["ended_unix_ns"] = time.time_ns()
            self._write_manifest()

    def load(self) -> "Run":
        """Opens what was captured."""
        from . import load

        if not self.folder:
            raise RuntimeError(
                "nothing was captured here: nothing ran yet, or the process was being captured "
                "already, as by `strobe run`"
            )
        return load(self.folder)

    def _write_manifest(self) -> None:
        path = os.path.join(self.folder, "manifest.json")
        with open(path + ".part", "w") as out:
            json.dump(self._manifest, out, indent=2)
        os.replace(path + ".part", path)


def step(name: str = "step") -> None:
    """Says that a step begins here. Without a capture it does nothing, at no cost to speak of."""
    _step("", name)


def _step(framework: str, name: str) -> None:
    engine = _engine()
    if engine is not None:
        engine.begins(Called((framework, "step", name), name))


def _engine() -> Any:
    """Who captures this process: what `strobe run` has put in front of it, or a block of ours."""
    hooked: Any = sys.modules.get("_stroboscope_capture")
    engine = None if hooked is None else hooked.relay.engine
    return engine if engine is not None else _capture.relay.engine


def _new_folder(out: Optional[str]) -> str:
    if out is not None:
        os.makedirs(out, exist_ok=True)
        if os.listdir(out):
            raise FileExistsError(
                "this folder is not empty, and a run needs one of its own: %s" % out
            )
        return os.path.abspath(out)
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(
        os.path.expanduser("~"), ".local", "state"
    )
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H-%M-%S")
    runs = os.path.join(state, "stroboscope", "runs")
    os.makedirs(runs, exist_ok=True)
    for n in range(1, 1000):
        folder = os.path.join(runs, "%s-profile%s" % (now, "" if n == 1 else "-%d" % n))
        try:
            os.mkdir(folder)
            return folder
        except FileExistsError:
            continue
    raise FileExistsError("too many runs of this second: %s" % runs)


def _manifest() -> dict[str, Any]:
    from . import __version__

    return {
        "schema": 1,
        "kind": "profile",
        "strobe": __version__,
        "started_unix_ns": time.time_ns(),
        "machine": {"os": sys.platform, "arch": platform.machine(), "cores": os.cpu_count()},
    }


def keras_callback(**options: Any) -> Any:
    """A Keras callback that captures a few steady batches of `fit`, `evaluate` or `predict`.

    >>> callback = stroboscope.keras_callback()                 # doctest: +SKIP
    >>> model.fit(dataset, callbacks=[callback])                # doctest: +SKIP
    >>> callback.capture.load().findings                        # doctest: +SKIP

    Takes what `profile` takes. The first loop that it is given to is captured, later ones pass
    untouched. Where the process is being captured already, as by `strobe run`, it only says where
    batches begin.
    """
    keras: Any = sys.modules.get("keras")
    if keras is None and "tensorflow" in sys.modules:
        keras = sys.modules["tensorflow"].keras
    if keras is None:
        raise RuntimeError("import keras before")
    backend = str(keras.backend.backend())

    class Callback(keras.callbacks.Callback):  # type: ignore[misc]
        """Opens a capture around the loop, and says where each batch begins."""

        def __init__(self) -> None:
            super().__init__()
            self.capture = profile(**options)
            self._loop: Optional[str] = None

        def _begin(self, loop: str) -> None:
            if loop == "test" and self._loop == "train":
                # Validation is part of the training.
                return
            # A loop that raised did not say that it ended.
            self._finish()
            self._loop = loop
            if not self.capture.folder and _engine() is None:
                self.capture.__enter__()

        def _end(self, loop: str) -> None:
            if loop == self._loop:
                self._finish()

        def _finish(self) -> None:
            self._loop = None
            self.capture.__exit__(None, None, None)

        def _batch(self, loop: str) -> None:
            if loop == self._loop:
                _step(backend, "batch")

        def on_train_begin(self, logs: Any = None) -> None:
            self._begin("train")

        def on_test_begin(self, logs: Any = None) -> None:
            self._begin("test")

        def on_predict_begin(self, logs: Any = None) -> None:
            self._begin("predict")

        def on_train_end(self, logs: Any = None) -> None:
            self._end("train")

        def on_test_end(self, logs: Any = None) -> None:
            self._end("test")

        def on_predict_end(self, logs: Any = None) -> None:
            self._end("predict")

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self._batch("train")

        def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
            self._batch("test")

        def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
            self._batch("predict")

    return Callback()
