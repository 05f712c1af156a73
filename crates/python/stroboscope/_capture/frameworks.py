"""What is known of each framework: which calls show its loop, and how its profiler is driven.

A framework's own code is wrapped as little as possible, and only where its calls come from Python.
Each part stands alone: a version that lacks one still gets the others.
"""

from __future__ import annotations

import functools
import os
import socket
import sys
import threading
import time
import types
import weakref
from threading import get_ident
from time import time_ns
from typing import Any, Callable, Hashable, Optional, Protocol, Tuple, Union

from . import sites, stacks

# Whose call, of which kind, to what: the framework, `function` or the like, whatever tells two
# apart.
Key = Tuple[str, str, Hashable]


class Called:
    """Something whose calls may be the steps of a program."""

    __slots__ = ("key", "name", "tell", "thread")

    def __init__(self, key: Key, name: str) -> None:
        self.key = key
        self.name = name
        # Where this thread's calls are only noted: what gets the time when one begins. While such
        # a call goes on it is not set, so that another inside of it is not noted. By the end of the
        # call another thread's calls may be the noted ones.
        self.tell: Optional[Callable[[int], None]] = None
        self.thread = 0


# What is to be done when a call has ended.
After = Optional[Callable[[Called], None]]


class Watcher(Protocol):
    """Who is told of calls."""

    def begins(self, called: Called) -> After: ...
    def batch(self, batch: Any) -> None: ...
    def yields_to_user(self, framework: str, folder: Any) -> None: ...
    def user_is_done(self) -> None: ...


class _Thread(threading.local):
    """Whether a thread is inside of a call that the watcher was told of."""

    # Which one, where the interpreter tells of calls.
    inside: Any = False


_thread = _Thread()
# Of each key the last one; more than a few are looked at anew.
_noted: dict[Key, Called] = {}
_MOST_NOTED = 64


def only_note(called: Called, tell: Callable[[int], None]) -> None:
    """From now on `tell` gets the time when this thread calls that; the watcher is told nothing."""
    if len(_noted) >= _MOST_NOTED:
        tell_again()
    before = _noted.get(called.key)
    if before is not None:
        before.thread = 0
    called.thread, called.tell = get_ident(), tell
    _noted[called.key] = called


def tell_again() -> None:
    """The watcher is told of every call again."""
    for called in tuple(_noted.values()):
        # No thread has this number.
        called.thread = 0
    _noted.clear()


def _is_inside() -> bool:
    """Whether this thread is inside of a call that was told or noted."""
    if _thread.inside:
        return True
    thread = get_ident()
    return any(it.tell is None and it.thread == thread for it in tuple(_noted.values()))


def _around(
    original: Callable[..., Any],
    watcher: Watcher,
    known: Union[_Known, _TheSame, _Given],
    gives_batch: bool = False,
) -> Callable[..., Any]:
    """Tells the watcher of outermost calls. What a call calls in turn is part of it."""
    find, learn = known.find, known.learn

    # This runs at every step of the program, when the step before has emptied the processor's
    # caches: each thing that is touched costs ten times what it seems to. Hence the short way.
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        called = find(id(args[0])) or learn(args[0])
        tell, thread = called.tell, called.thread
        if tell is None or get_ident() != thread:
            return _call(original, args, kwargs, called, watcher, gives_batch)
        called.tell = None
        try:
            tell(time_ns())
            return original(*args, **kwargs)
        finally:
            if called.thread == thread:
                called.tell = tell

    return call


def _call(
    original: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    called: Called,
    watcher: Watcher,
    gives_batch: bool = False,
) -> Any:
    if _is_inside():
        return original(*args, **kwargs)
    after = watcher.begins(called)
    _thread.inside = True
    try:
        result = original(*args, **kwargs)
    finally:
        _thread.inside = False
        if after is not None:
            after(called)
    if gives_batch:
        watcher.batch(result)
    return result


class _Known:
    """What things are, found again by their numbers while they live."""

    def __init__(self, identify: Callable[[Any], Called]) -> None:
        self._found: dict[int, Called] = {}
        self.find = self._found.get
        self._identify = identify
        self._living: dict[int, weakref.ref[Any]] = {}

    def learn(self, it: Any) -> Called:
        called = self._identify(it)
        number = id(it)

        def gone(_: Any) -> None:
            self._found.pop(number, None)
            self._living.pop(number, None)

        try:
            # Told before another one can get the number.
            self._living[number] = weakref.ref(it, gone)
            self._found[number] = called
        except TypeError:
            pass
        return called


class _TheSame:
    """All things are the same one."""

    def __init__(self, called: Called) -> None:
        self.find = self.learn = lambda _: called


class _Given:
    """What is called comes first among the arguments."""

    @staticmethod
    def find(_: int) -> Optional[Called]:
        return None

    @staticmethod
    def learn(called: Called) -> Called:
        return called


def _told(
    start: Callable[..., Any], stop: Callable[..., Any], watcher: Watcher, owner: str, folder: str
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A profiler's start and stop for the program itself, of which the watcher is told."""

    @functools.wraps(start)
    def told_start(*args: Any, **kwargs: Any) -> Any:
        watcher.yields_to_user(owner, args[0] if args else kwargs.get(folder))
        try:
            return start(*args, **kwargs)
        except BaseException:
            watcher.user_is_done()
            raise

    @functools.wraps(stop)
    def told_stop(*args: Any, **kwargs: Any) -> Any:
        try:
            return stop(*args, **kwargs)
        finally:
            watcher.user_is_done()

    return told_start, told_stop


def _innermost(function: Any) -> Any:
    """What a function was before anybody wrapped it."""
    for _ in range(16):
        for name in ("__wrapped__", "func", "__func__", "_python_function"):
            inner = getattr(function, name, None)
            if callable(inner):
                function = inner
                break
        else:
            break
    return function


def _identity(owner: str, function: Any, otherwise: Any) -> Called:
    """The same for a function that is wrapped anew at every step."""
    what: Hashable = None
    name = ""
    try:
        function = _innermost(function)
        name = str(getattr(function, "__name__", None) or type(function).__name__)
        what = _what_runs(function, set())
        hash(what)
    except Exception:
        # It is the program's own: asked for an attribute it may do anything, and must not be
        # stopped by that.
        what = None
    return Called(
        (owner, "function", what if what is not None else id(otherwise)), name or "a function"
    )


def _what_runs(function: Any, seen: set[int]) -> Hashable:
    """A function's code, and that of functions in its closure.

    By these alone two functions differ that somebody makes for others, as Keras makes one that
    trains and one that tests.
    """
    function = _innermost(function)
    code: Hashable = getattr(function, "__code__", None)
    if code is None or len(seen) >= 16:
        return code
    seen.add(id(function))
    inner = []
    for cell in getattr(function, "__closure__", None) or ():
        try:
            held = cell.cell_contents
        except ValueError:
            # Not set yet.
            continue
        # Not whatever can be called: asking a stranger for attributes may do anything.
        if isinstance(held, _FUNCTIONS) or "_python_function" in getattr(held, "__dict__", ()):
            if id(_innermost(held)) not in seen:
                inner.append(_what_runs(held, seen))
    return (code, *inner) if inner else code


def _names(fetched: Any) -> tuple[str, ...]:
    """What a session is asked for."""
    try:
        if isinstance(fetched, dict):
            fetched = tuple(fetched.values())
        if not isinstance(fetched, (list, tuple)):
            fetched = (fetched,)
        return tuple(str(getattr(it, "name", type(it).__name__)) for it in fetched) or ("nothing",)
    except Exception:
        return ("something",)


_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)


def _nothing() -> None:
    pass


class TensorFlow:
    name = "tensorflow"

    def __init__(self, module: Any) -> None:
        self.version = str(getattr(module, "__version__", "?"))
        self._api = module.profiler.experimental

    def watch(self, watcher: Watcher) -> list[str]:
        """Wraps what shows a loop; answers what could not be wrapped."""
        return _each(
            {
                "tf.function": lambda: self._watch_functions(watcher),
                "gradients": lambda: self._watch_gradients(watcher),
                "iterators": lambda: self._watch_iterators(watcher),
                "sessions": lambda: self._watch_sessions(watcher),
                "Python in pipelines": self._watch_py_functions,
                "its profiler": lambda: self._watch_profiler(watcher),
                "where datasets are made": sites.watch_datasets,
                "where functions are made": sites.watch_tf_functions,
            }
        )

    def _watch_functions(self, watcher: Watcher) -> None:
        from tensorflow.python.eager.polymorphic_function import polymorphic_function

        def identify(it: Any) -> Called:
            return _identity(self.name, getattr(it, "_python_function", None), it)

        function = polymorphic_function.Function
        function.__call__ = _around(function.__call__, watcher, _Known(identify))

    def _watch_gradients(self, watcher: Watcher) -> None:
        from tensorflow.python.eager import backprop

        # Each step has a tape of its own.
        known = _TheSame(Called((self.name, "gradient", "tape"), "gradient"))
        tape = backprop.GradientTape
        tape.gradient = _around(tape.gradient, watcher, known)

    def _watch_iterators(self, watcher: Watcher) -> None:
        from tensorflow.python.data.ops import iterator_ops

        def identify(it: Any) -> Called:
            return Called((self.name, "next", id(it)), "next(dataset)")

        known = _Known(identify)
        iterator = iterator_ops.OwnedIterator
        iterator.__next__ = _around(iterator.__next__, watcher, known, True)
        iterator.get_next = _around(iterator.get_next, watcher, known, True)

    def _watch_sessions(self, watcher: Watcher) -> None:
        """The loops of TensorFlow 1, which still run: a step is what is fetched."""
        from tensorflow.python.client import session

        known: dict[tuple[str, ...], Called] = {}
        base = session.BaseSession
        original = base.run

        def run_what(_: Called, *args: Any, **kwargs: Any) -> Any:
            return original(*args, **kwargs)

        told = _around(run_what, watcher, _Given())

        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            fetched = _names(args[1] if len(args) > 1 else kwargs.get("fetches"))
            called = known.get(fetched)
            if called is None:
                called = Called((self.name, "function", ("run", fetched)), fetched[0])
                if len(known) < 256:
                    known[fetched] = called
            return told(called, *args, **kwargs)

        base.run = run

    def _watch_py_functions(self) -> None:
        from tensorflow.python.ops import script_ops

        registry = script_ops.FuncRegistry
        original = registry.__call__

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            stacks.this_thread_is_native()
            return original(*args, **kwargs)

        registry.__call__ = call

    def _watch_profiler(self, watcher: Watcher) -> None:
        from tensorflow.python.profiler import profiler_v2

        self._start, self._stop = profiler_v2.start, profiler_v2.stop
        start, stop = _told(self._start, self._stop, watcher, self.name, "logdir")
        profiler_v2.start, profiler_v2.stop = start, stop
        self._api.start, self._api.stop = start, stop

    def start(self, folder: str) -> None:
        options = self._api.ProfilerOptions(
            host_tracer_level=2, python_tracer_level=0, device_tracer_level=1
        )
        self._start(folder, options=options)

    def stop(self, save: bool) -> None:
        self._stop(save=save)


class Jax:
    name = "jax"

    def __init__(self, module: Any) -> None:
        self.version = str(getattr(module, "__version__", "?"))
        self._module = module
        self._api = module.profiler
        self._jit = module.jit
        self._folder = ""
        # Of functions that nobody watches.
        self._bare_type: Any = None
        self._its_own = ""

    def watch(self, watcher: Watcher) -> list[str]:
        return _each(
            {
                "jax.jit": lambda: self._watch_jit(watcher),
                "what is compiled ahead": lambda: self._watch_compiled_ahead(watcher),
                "gradients": lambda: self._watch_gradients(watcher),
                "its profiler": lambda: self._watch_profiler(watcher),
                "where functions are made": lambda: sites.watch_jax(self._module),
            }
        )

    def _watch_jit(self, watcher: Watcher) -> None:
        from jax._src import pjit

        make = pjit._cpp_pjit
        self._its_own = os.path.dirname(os.path.dirname(os.path.abspath(pjit.__file__))) + os.sep
        self._bare_type = type(self._jit(_nothing))

        @functools.wraps(make)
        def watched(fun: Any, *args: Any, **kwargs: Any) -> Any:
            jitted = make(fun, *args, **kwargs)
            # JAX 0.4 hands over what it knows of the function, which is a part of that.
            function = fun if callable(fun) else getattr(fun, "fun", fun)
            return jitted if self._is_its_own(function) else Jitted(jitted, watcher, self.name)

        pjit._cpp_pjit = watched

    def _watch_compiled_ahead(self, watcher: Watcher) -> None:
        from jax._src import stages

        def identify(it: Any) -> Called:
            name = getattr(getattr(it._executable, "unsafe_call", None), "name", None)
            name = str(name or "a compiled function")
            if name.startswith("jit(") and name.endswith(")"):
                name = name[4:-1]
            return Called((self.name, "function", id(it)), name)

        compiled = stages.Compiled
        compiled.__call__ = _around(compiled.__call__, watcher, _Known(identify))

    def _watch_gradients(self, watcher: Watcher) -> None:
        """What computes gradients op by op: inside of a compiled function nobody is told."""
        called = Called((self.name, "gradient", "grad"), "gradient")

        def told(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def make(*args: Any, **kwargs: Any) -> Any:
                made = original(*args, **kwargs)

                def run(_: Called, *args: Any, **kwargs: Any) -> Any:
                    return made(*args, **kwargs)

                tells = _around(run, watcher, _Given())

                @functools.wraps(made)
                def gradient(*args: Any, **kwargs: Any) -> Any:
                    return tells(called, *args, **kwargs)

                return gradient

            return make

        for name in ("grad", "value_and_grad"):
            setattr(self._module, name, told(getattr(self._module, name)))

    def _is_its_own(self, function: Any) -> bool:
        """Many of JAX's own functions are compiled too, some on first use."""
        code = getattr(_innermost(function), "__code__", None)
        return code is not None and code.co_filename.startswith(self._its_own)

    def watch_compiled(self, watcher: Watcher) -> Callable[[], None]:
        """Tells of functions that were compiled before anybody watched; answers how to end that.

        Their calls go from Python's interpreter straight into JAX, so it is the interpreter that
        has to tell. Places that call something else are told once and never again.
        """
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is None:
            raise RuntimeError("Python before 3.12 does not tell of calls")
        tool = next((it for it in (4, 3) if monitoring.get_tool(it) is None), None)
        if tool is None or self._bare_type is None:
            raise RuntimeError("another tool monitors this program")

        def begins(code: Any, offset: int, called: Any, first: Any) -> Any:
            if type(called) is not self._bare_type or self._is_its_own(called):
                return monitoring.DISABLE
            if not _is_inside():
                it = _identity(self.name, called, called)
                _thread.inside = called, it, watcher.begins(it)
            return None

        def ends(code: Any, offset: int, called: Any, first: Any) -> None:
            inside = _thread.inside
            if isinstance(inside, tuple) and inside[0] is called:
                _thread.inside = False
                _, it, after = inside
                if after is not None:
                    after(it)

        events = monitoring.events
        monitoring.use_tool_id(tool, "stroboscope")
        monitoring.register_callback(tool, events.CALL, begins)
        monitoring.register_callback(tool, events.C_RETURN, ends)
        monitoring.register_callback(tool, events.C_RAISE, ends)
        # Places that an earlier block had put aside.
        monitoring.restart_events()
        monitoring.set_events(tool, events.CALL)

        def stop() -> None:
            monitoring.set_events(tool, events.NO_EVENTS)
            monitoring.free_tool_id(tool)
            _thread.inside = False

        return stop

    def _watch_profiler(self, watcher: Watcher) -> None:
        from jax._src import profiler

        self._start, self._stop = profiler.start_trace, profiler.stop_trace
        start, stop = _told(self._start, self._stop, watcher, self.name, "log_dir")
        profiler.start_trace, profiler.stop_trace = start, stop
        self._api.start_trace, self._api.stop_trace = start, stop

    def start(self, folder: str) -> None:
        self._folder = folder
        options = None
        if hasattr(self._api, "ProfileOptions"):
            options = self._api.ProfileOptions()
            options.python_tracer_level = 0
            options.host_tracer_level = 2
        if options is None:
            self._start(folder)
        else:
            self._start(folder, profiler_options=options)

    def stop(self, save: bool) -> None:
        """Saves the profile alone: JAX would turn it into a second format, which takes longer."""
        from jax._src import profiler

        state: Any = getattr(profiler, "_profile_state", None)
        session = getattr(state, "profile_session", None)
        if session is None or not hasattr(session, "stop") or not hasattr(state, "reset"):
            self._stop()
            return
        with state.lock:
            data = session.stop()
            state.reset()
        if save:
            _write_profile(self._folder, data)


class Jitted:
    """A function compiled by JAX, whose calls are told."""

    __slots__ = ("__weakref__", "_called", "_jitted", "_watcher")

    def __init__(self, jitted: Any, watcher: Watcher, owner: str) -> None:
        set_ = object.__setattr__
        set_(self, "_jitted", jitted)
        set_(self, "_watcher", watcher)
        set_(self, "_called", _identity(owner, jitted, jitted))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # The short way, as in `_around`.
        called = self._called
        tell, thread = called.tell, called.thread
        if tell is None or get_ident() != thread:
            return _call(self._jitted, args, kwargs, called, self._watcher)
        called.tell = None
        try:
            tell(time_ns())
            return self._jitted(*args, **kwargs)
        finally:
            if called.thread == thread:
                called.tell = tell

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        from types import MethodType

        return MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._jitted, name, value)

    def __repr__(self) -> str:
        return repr(self._jitted)

    def __hash__(self) -> int:
        return hash(self._jitted)

    def __eq__(self, other: Any) -> bool:
        return bool(self._jitted == (other._jitted if isinstance(other, Jitted) else other))

    def __reduce__(self) -> Any:
        return self._jitted.__reduce__()

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return self._jitted.__doc__

    @property
    def __module__(self) -> Any:  # type: ignore[override]
        return self._jitted.__module__


class Torch:
    name = "torch"

    def __init__(self, module: Any) -> None:
        self.version = str(getattr(module, "__version__", "?"))
        self._torch = module
        self._profiler: Any = None
        self._begin: Callable[[Any], None] = lambda it: it.start()
        self._folder = ""

    def watch(self, watcher: Watcher) -> list[str]:
        return _each(
            {
                "optimizers": lambda: self._watch_optimizers(watcher),
                "data loaders": lambda: self._watch_loaders(watcher),
                "its profiler": lambda: self._watch_profiler(watcher),
                "where loaders are made": lambda: sites.watch_torch(self._torch),
            }
        )

    def _watch_optimizers(self, watcher: Watcher) -> None:
        from torch.optim import optimizer

        def identify(it: Any) -> Called:
            return Called((self.name, "optimizer", id(it)), type(it).__name__)

        known = _Known(identify)

        def before(it: Any, args: Any, kwargs: Any) -> None:
            called = known.find(id(it)) or known.learn(it)
            if called.tell is not None and get_ident() == called.thread:
                called.tell(time_ns())
                return
            after = watcher.begins(called)
            if after is not None:
                after(called)

        optimizer.register_optimizer_step_pre_hook(before)

    def _watch_loaders(self, watcher: Watcher) -> None:
        from torch.utils.data import dataloader

        def identify(it: Any) -> Called:
            return Called((self.name, "next", id(it)), "next(loader)")

        loader = dataloader._BaseDataLoaderIter
        loader.__next__ = _around(loader.__next__, watcher, _Known(identify), True)

    def _watch_profiler(self, watcher: Watcher) -> None:
        """A thread has one profiler: a second one fails, whoever began first.

        One that follows a schedule is the program's also while it waits.
        """
        from torch.autograd import profiler as plain
        from torch.profiler import profiler

        theirs: set[int] = set()

        def told_begin(begin: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(begin)
            def call(it: Any, *args: Any, **kwargs: Any) -> Any:
                watcher.yields_to_user(self.name, None)
                theirs.add(id(it))
                return begin(it, *args, **kwargs)

            return call

        def told_end(end: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(end)
            def call(it: Any, *args: Any, **kwargs: Any) -> Any:
                try:
                    return end(it, *args, **kwargs)
                finally:
                    if id(it) in theirs:
                        theirs.discard(id(it))
                        if not theirs:
                            watcher.user_is_done()

            return call

        it = profiler.profile
        self._begin = it.start
        it.start, it.stop = told_begin(it.start), told_end(it.stop)
        for name in ("profile", "emit_nvtx", "emit_itt"):
            it = getattr(plain, name, None)
            if it is not None:
                it.__enter__, it.__exit__ = told_begin(it.__enter__), told_end(it.__exit__)

    def start(self, folder: str) -> None:
        self._folder = folder
        self._profiler = self._torch.profiler.profile(record_shapes=True)
        self._begin(self._profiler)

    def stop(self, save: bool) -> None:
        it, self._profiler = self._profiler, None
        it.__exit__(None, None, None)
        if save:
            # Beside the others' profiles, where a source for it will look.
            folder = os.path.join(os.path.dirname(os.path.dirname(self._folder)), "torch")
            os.makedirs(folder, exist_ok=True)
            it.export_chrome_trace(os.path.join(folder, "%d.pt.trace.json" % os.getpid()))


# By the name of the module that is imported. Where nothing else tells who computes, the first of
# those imported does: who has TensorFlow beside another mostly reads data with it.
FRAMEWORKS: dict[str, Callable[[Any], Any]] = {
    "jax": Jax,
    "torch": Torch,
    "tensorflow": TensorFlow,
}


def _each(parts: dict[str, Callable[[], None]]) -> list[str]:
    missing = []
    for name, part in parts.items():
        try:
            part()
        except Exception as error:
            missing.append("%s (%s: %s)" % (name, type(error).__name__, error))
    return missing


def examples_of(batch: Any) -> Optional[int]:
    """How many examples a batch holds: the first dimension of its first array."""
    for _ in range(8):
        shape = getattr(batch, "shape", None)
        if shape is not None:
            try:
                return int(shape[0]) if len(shape) else None
            except (TypeError, ValueError, IndexError):
                return None
        if isinstance(batch, dict):
            batch = next(iter(batch.values()), None)
        elif isinstance(batch, (tuple, list)) and batch:
            batch = batch[0]
        else:
            return None
    return None


def _write_profile(folder: str, data: bytes) -> None:
    run = time.strftime("%Y_%m_%d_%H_%M_%S")
    folder = os.path.join(folder, "plugins", "profile", run)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, socket.gethostname() + ".xplane.pb")
    # Under its name only when it is whole.
    with open(path + ".part", "wb") as out:
        out.write(data)
    os.replace(path + ".part", path)
