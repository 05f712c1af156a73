"""Puts a name of the user's into whichever framework's profile is on."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Callable, TypeVar, cast

if TYPE_CHECKING:
    from types import TracebackType

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Region = Callable[[str], AbstractContextManager[Any]]


def _tensorflow(module: Any) -> _Region:
    return cast("_Region", module.profiler.experimental.Trace)


def _jax(module: Any) -> _Region:
    return cast("_Region", module.profiler.TraceAnnotation)


def _torch(module: Any) -> _Region:
    profiler = module.autograd.profiler
    record: _Region = profiler.record_function

    def region(name: str) -> AbstractContextManager[Any]:
        # Unlike the others it costs microseconds where nobody records; older ones cannot say.
        return record(name) if getattr(profiler, "_is_profiler_enabled", True) else _NOTHING

    return region


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


_NOTHING = _Nothing()
_FRAMEWORKS: dict[str, Callable[[Any], _Region]] = {
    "tensorflow": _tensorflow,
    "jax": _jax,
    "torch": _torch,
}


class _Known:
    """What was found of the frameworks so far. Any thread may look again: all find the same."""

    def __init__(self) -> None:
        self.found: dict[str, _Region] = {}
        self.regions: tuple[_Region, ...] = ()
        self.missing: tuple[str, ...] = tuple(_FRAMEWORKS)

    def look_again(self) -> None:
        for name in self.missing:
            # It may be there and not yet whole: just now being imported.
            with contextlib.suppress(KeyError, AttributeError):
                self.found[name] = _FRAMEWORKS[name](sys.modules[name])
        self.regions = tuple(self.found[it] for it in _FRAMEWORKS if it in self.found)
        self.missing = tuple(it for it in _FRAMEWORKS if it not in self.found)


_known = _Known()


class annotate:
    """Give a region of code a name in the profile: a context manager and a decorator.

    The name goes to every framework that is imported (TensorFlow, JAX, PyTorch) and shows in the
    profile that is being taken, if one is. No framework is imported for it. Where nothing is
    being profiled it costs a microsecond or two.

    >>> import stroboscope
    >>> with stroboscope.annotate("augment"):
    ...     batch = [it * 2 for it in range(3)]
    >>> @stroboscope.annotate("load one")
    ... def load(at):
    ...     return at
    >>> load(7)
    7

    Use it around Python that runs in every step: code inside a ``tf.function`` or ``jax.jit`` runs
    only while it is traced, and has ``tf.name_scope`` and ``jax.named_scope`` for names.
    """

    __slots__ = ("_name", "_open")

    def __init__(self, name: str) -> None:
        """Name the region that will be entered."""
        self._name = name
        self._open: list[list[AbstractContextManager[Any]]] = []

    def __enter__(self) -> annotate:
        """Begin the region."""
        modules = sys.modules
        for name in _known.missing:
            if name in modules:
                _known.look_again()
                break
        entered: list[AbstractContextManager[Any]] = []
        self._open.append(entered)
        for region in _known.regions:
            # A profiler that fails must not end the training.
            try:
                entering = region(self._name)
                entering.__enter__()
            except Exception:  # noqa: S112
                continue
            entered.append(entering)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the region; what was raised in it goes on."""
        for entered in reversed(self._open.pop()):
            try:
                entered.__exit__(kind, error, trace)
            except Exception:  # noqa: S112
                continue

    def __call__(self, function: _Function) -> _Function:
        """Name every call of a function; of coroutines and generators, until they end."""
        name = self._name

        # A region of its own for each call: calls nest, and happen in several threads.
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with annotate(name):
                    return await function(*args, **kwargs)

            return cast("_Function", awaited)

        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generated(*args: Any, **kwargs: Any) -> Any:
                with annotate(name):
                    return (yield from function(*args, **kwargs))

            return cast("_Function", generated)

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with annotate(name):
                return function(*args, **kwargs)

        return cast("_Function", called)
