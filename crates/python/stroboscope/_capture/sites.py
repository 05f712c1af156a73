"""Where a program makes what matters for its speed: the user's own lines, each noted once.

```text
ds.map(augment) ──wrapped──▶ nearest frame of the user's code ──new?──▶ list
                                                    minder thread: source text ──▶ ["site", …]
```

Only calls that make something are wrapped: a stage of a dataset, a compiled function, an optimizer.
No step of a loop comes through here. What goes wrong is written down and ends the noting, never
the call.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import sysconfig
import threading
import weakref
from itertools import islice
from time import time_ns
from types import CodeType, FrameType
from typing import Any, Callable, Iterable, NamedTuple, Optional

from .log import Log
from .source import Loop, Position, Source

# A program that makes more has places in a loop, or is written by another program.
MOST_SITES = 500
# Deeper than any program's own code below a framework's call.
DEEPEST = 128
# So many functions of the user's are between a program's beginning and its step, at most.
MOST_CALLERS = 32
# Of a dataset that nobody noted: so many that it was made of are looked at.
DEEPEST_DATASET = 64

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_GENERATED = "__autograph_generated_file"


class Place(NamedTuple):
    """An instruction of the user's code; what it is of the source is worked out later."""

    file: str
    line: int
    code: Optional[CodeType]
    lasti: int

    def position(self) -> Position:
        if self.code is not None and hasattr(self.code, "co_positions"):
            found = next(islice(self.code.co_positions(), self.lasti // 2, None), None)
            if found is not None and found[1] is not None:
                return Position(self.line, found[1], found[3])
        return Position(self.line, None, None)


class Site:
    """One call of the user's code."""

    def __init__(
        self,
        number: int,
        kind: str,
        name: Optional[str],
        place: Place,
        inputs: tuple[int, ...],
        inside: Optional[int],
        args: dict[str, Any],
        defined: Optional[tuple[str, int]],
    ) -> None:
        self.number = number
        self.kind = kind
        self.name = name
        self.place = place
        self.inputs = inputs
        self.inside = inside
        self.args = args
        self.defined = defined
        self.at_ns = time_ns()


class Caller(NamedTuple):
    """A function of the user's on the way to a step, and where it was."""

    place: Place
    function: str
    first_line: int
    is_generator: bool


class Inside(NamedTuple):
    """A noted call that has not ended."""

    number: int
    frame: FrameType


class Sites:
    """The sites of one process; written out by whoever minds it."""

    def __init__(self, log: Log) -> None:
        self.is_over = False
        self._log = log
        self._numbers: dict[Any, int] = {}
        self._new: list[Site] = []
        self._steps: list[tuple[Caller, ...]] = []
        self._made: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._functions: dict[tuple[str, int, str], int] = {}
        self._thread = threading.local()
        self._lock = threading.RLock()
        self._sources: dict[str, Optional[Source]] = {}

    # These run inside the user's calls: they never raise.

    def begins(self, what: What, frame: FrameType, args: Any, kwargs: Any) -> Optional[Inside]:
        """A call that makes something begins; answers where, if that is in the user's code."""
        try:
            inside = self._begins(what, frame, args, kwargs)
        except Exception as error:
            self._fail(what.kind, error)
            return None
        if inside is not None:
            self._inside().append(inside)
        return inside

    def ends(self) -> None:
        self._inside().pop()

    def made(self, number: int, it: Any) -> None:
        """What came out of a call, so that later ones can name it as what they are made of."""
        if self.is_over:
            return
        try:
            key = id(it)

            def gone(_: Any) -> None:
                self._made.pop(key, None)

            self._made[key] = weakref.ref(it, gone), number
        except TypeError:
            # Nobody can say when such a thing is gone, and another may get its number.
            pass
        except Exception as error:
            self._fail("what was made", error)

    def step(self, frame: Optional[FrameType]) -> None:
        """A step begins below this frame, the first of its loop: its caller is kept for later."""
        if self.is_over:
            return
        try:
            callers: list[Caller] = []
            for _ in range(DEEPEST):
                if frame is None or len(callers) >= MOST_CALLERS:
                    break
                code = frame.f_code
                if is_own(code.co_filename) and _GENERATED not in code.co_filename:
                    place = Place(code.co_filename, frame.f_lineno, code, frame.f_lasti)
                    is_generator = bool(code.co_flags & inspect.CO_GENERATOR)
                    callers.append(Caller(place, code.co_name, code.co_firstlineno, is_generator))
                frame = frame.f_back
            if callers:
                self._steps.append(tuple(callers))
        except Exception as error:
            self._fail("the loop", error)

    def write_out(self) -> None:
        """Writes what is new, with its text."""
        with self._lock:
            new, self._new = self._new, []
            called, self._steps = self._steps, []
        for callers in called:
            try:
                self._write_loop(callers)
            except Exception as error:
                self._fail("the loop", error)
                return
        if not new:
            self._sources.clear()
            return
        for site in new:
            try:
                self._log.write(*self._record(site))
            except Exception as error:
                self._fail(site.kind, error)
                return
        # A program makes its things once, mostly: its sources need not stay in memory.
        self._sources.clear()

    def forget(self) -> None:
        """In a forked child: these are the parent's."""
        self.is_over = True
        self._new = []
        self._steps = []
        self._lock = threading.RLock()

    def _inside(self) -> list[Inside]:
        it: Optional[list[Inside]] = getattr(self._thread, "inside", None)
        if it is None:
            it = self._thread.inside = []
        return it

    def _begins(self, what: What, frame: FrameType, args: Any, kwargs: Any) -> Optional[Inside]:
        own = _own_frame(frame, args[0] if what.is_init and args else None)
        if own is None:
            return None
        inside = self._inside()
        if inside and inside[-1].frame is own:
            # A part of a call that is noted already: TensorFlow makes many stages of others.
            return None
        given = what.given(args, kwargs)
        function = what.function_of(given)
        code = _code_of(function)
        if what.is_function:
            if code is None or not is_own(code.co_filename):
                # A framework's own, made for the user's call.
                return None
            known = self._functions.get(_where(code))
            if known is not None:
                # The same again: bound to an object, or for another signature.
                return Inside(known, own)
        place = _place(own)
        if place is None:
            return None
        outer = inside[-1].number if inside else None
        for it in what.parts_of(given):
            if self.of(it) is None:
                # Its own making went unseen: a class of the user's that does not call `super`.
                code_of_part = _code_of_class(type(it))
                part = self._add(
                    what.part_kind, type(it).__name__, place, (), outer, {}, code_of_part
                )
                if part is not None:
                    self.made(part, it)
        inputs = tuple(it for it in map(self.of, what.inputs_of(given)) if it is not None)
        name = what.name_of(given, function)
        if what.is_init and code is None:
            code = _code_of_class(type(args[0]))
        number = self._add(what.kind, name, place, inputs, outer, what.args_of(given), code)
        if number is None:
            return None
        if what.is_function and code is not None:
            self._functions[_where(code)] = number
        return Inside(number, own)

    def _add(
        self,
        kind: str,
        name: Optional[str],
        place: Place,
        inputs: tuple[int, ...],
        outer: Optional[int],
        args: dict[str, Any],
        code: Optional[CodeType],
    ) -> Optional[int]:
        # Not by the code itself: to hash one is to walk all of it.
        key = kind, place.file, place.line, place.lasti, inputs, outer, name
        known = self._numbers.get(key)
        if known is not None:
            return known
        with self._lock:
            number = len(self._numbers)
            if number >= MOST_SITES:
                self.is_over = True
                self._log.said("sites", "more than %d: the others are not noted" % MOST_SITES)
                return None
            self._numbers[key] = number
            defined = None
            if code is not None and is_own(code.co_filename):
                # Where that is a rewritten function, its own place is not known.
                if _GENERATED not in code.co_filename:
                    defined = os.path.abspath(code.co_filename), code.co_firstlineno
            self._new.append(Site(number, kind, name, place, inputs, outer, args, defined))
            return number

    def of(self, it: Any, depth: int = 0) -> Optional[int]:
        """The site of a dataset, or of what it was made of by code that nobody noted."""
        found = self._made.get(id(it))
        if found is not None and found[0]() is it:
            return found[1]
        if depth >= DEEPEST_DATASET or not _is_dataset(it):
            return None
        # `DatasetV1Adapter` wraps another one; the distributed ones keep theirs.
        for name in ("_dataset", "_original_dataset"):
            inner = getattr(it, name, None)
            if inner is not None and inner is not it:
                return self.of(inner, depth + 1)
        inputs: Any = it._inputs() if hasattr(it, "_inputs") else ()
        return self.of(inputs[0], depth + 1) if len(inputs) == 1 else None

    def _record(self, site: Site) -> tuple[Any, ...]:
        position = site.place.position()
        if site.kind == "dataset.iter":
            # A loop ends where its body does; its head is what counts.
            position = Position(position.line, None, None)
        file = site.place.file
        text, text_line, call = "", position.line, None
        source = self._source(file)
        if source is not None:
            text, text_line, position, call = source.around(position, site.kind)
        more: dict[str, Any] = {"text_line": text_line, "time": site.at_ns}
        for key, value in (
            ("end_col", position.end_col),
            ("call", call),
            ("args", site.args),
            ("inputs", site.inputs),
            ("inside", site.inside),
            ("defined", site.defined),
        ):
            if value is not None and value != {} and value != ():
                more[key] = value
        end_line = position.end_line or position.line
        file = file if file.startswith("<") else os.path.abspath(file)
        return "site", site.number, site.kind, site.name, file, position.line, end_line, text, more

    def _write_loop(self, callers: tuple[Caller, ...]) -> None:
        """The innermost loop around a step, and the function that it calls for one."""
        called: Optional[Caller] = None
        found: Optional[Loop] = None
        for it in callers:
            if it.function.startswith("<") and it.function not in ("<module>", "<lambda>"):
                # The loop is an expression: nothing can be put into it.
                return
            source = None if it.is_generator else self._source(it.place.file)
            if source is not None:
                found = source.loop_around(it.place.position(), it.function, it.first_line)
            if found is not None:
                break
            called = None if it.is_generator else it
        if found is None:
            return
        with self._lock:
            step = (called.place.file, called.first_line) if called is not None else None
            key = "loop", it.place.file, found.line, step
            if key in self._numbers or len(self._numbers) >= MOST_SITES:
                return
            number = self._numbers[key] = len(self._numbers)
        args = {"function": it.function, "step_line": it.place.line}
        more: dict[str, Any] = {"text_line": found.line, "time": time_ns(), "args": args}
        name = None
        if called is not None and not called.function.startswith("<"):
            name = called.function
            more["defined"] = os.path.abspath(called.place.file), called.first_line
        file = it.place.file
        file = file if file.startswith("<") else os.path.abspath(file)
        self._log.write(
            "site", number, "loop", name, file, found.line, found.end_line, found.text, more
        )

    def _source(self, file: str) -> Optional[Source]:
        if file not in self._sources:
            self._sources[file] = Source.read(file)
        return self._sources[file]

    def _fail(self, what: str, error: Exception) -> None:
        self.is_over = True
        try:
            self._log.said("sites-failed", "%s: %s: %s" % (what, type(error).__name__, error))
        except Exception:
            pass


# Whose code is whose.


@functools.lru_cache(maxsize=None)
def _installed() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = {os.path.abspath(it) for it in map(sysconfig.get_path, names) if it}
    # Of a virtual environment: the standard library is elsewhere.
    paths.add(os.path.dirname(os.path.abspath(os.__file__)))
    return tuple(it + os.sep for it in sorted(paths))


_own: dict[str, bool] = {}


def is_own(file: str) -> bool:
    """Whether a file is the user's, not a library's and not of this hook."""
    known = _own.get(file)
    if known is None:
        known = _own[file] = _looks_own(file)
    return known


def _looks_own(file: str) -> bool:
    if file.startswith("<"):
        return file.startswith("<ipython-input")
    parts = file.replace("\\", "/").split("/")
    if "site-packages" in parts or "dist-packages" in parts:
        return False
    path = os.path.abspath(file)
    return not path.startswith(_OURS) and not path.startswith(_installed())


def _own_frame(frame: Optional[FrameType], made: Any) -> Optional[FrameType]:
    """The nearest frame of the user's code; of a class of theirs, where an object is made."""
    for _ in range(DEEPEST):
        if frame is None:
            return None
        code = frame.f_code
        if is_own(code.co_filename):
            is_its_init = (
                made is not None
                and code.co_name == "__init__"
                and code.co_argcount > 0
                and frame.f_locals.get(code.co_varnames[0]) is made
            )
            if not is_its_init:
                return frame
        frame = frame.f_back
    return None


def _where(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_name


def _place(frame: FrameType) -> Optional[Place]:
    file = frame.f_code.co_filename
    if _GENERATED not in file:
        return Place(file, frame.f_lineno, frame.f_code, frame.f_lasti)
    before = _before_autograph()
    return None if before is None else Place(*before, None, 0)


def _before_autograph() -> Optional[tuple[str, int]]:
    """Where this code stood before TensorFlow rewrote it."""
    from tensorflow.python.util import tf_stack

    for it in reversed(tf_stack.extract_stack()):
        if _GENERATED not in it.filename and is_own(it.filename):
            return it.filename, it.lineno
    return None


def _code_of(function: Any) -> Optional[CodeType]:
    for _ in range(16):
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            inner = getattr(function, "__wrapped__", None)
            if inner is None:
                return code
        else:
            inner = None
            for name in ("__wrapped__", "func", "__func__", "_python_function", "_fun"):
                inner = getattr(function, name, None)
                if callable(inner):
                    break
            else:
                call = getattr(type(function), "__call__", None)  # noqa: B004 (its code is wanted)
                return getattr(call, "__code__", None)
        function = inner
    return None


# What a class is there for: what is called at every batch comes first.
_WORKS = (
    "on_train_batch_end",
    "on_train_batch_begin",
    "on_batch_end",
    "__getitem__",
    "on_epoch_end",
)


def _code_of_class(it: type) -> Optional[CodeType]:
    """The method of a class of the user's that does its work."""
    for name in _WORKS:
        code = getattr(vars(it).get(name), "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None


def _name_of(function: Any) -> Optional[str]:
    for _ in range(16):
        name = getattr(function, "__name__", None)
        if isinstance(name, str):
            return "lambda" if name == "<lambda>" else name
        inner = getattr(function, "func", None) or getattr(function, "_python_function", None)
        if inner is None:
            return type(function).__name__ if function is not None else None
        function = inner
    return None


# What is wrapped.


_TUNED = ("num_parallel_calls", "buffer_size", "num_parallel_reads")


class What:
    """A call that makes something: its kind, and which of its arguments matter."""

    def __init__(
        self,
        kind: str,
        original: Callable[..., Any],
        function: Optional[str] = None,
        args: Iterable[str] = (),
        inputs: Iterable[str] = (),
        is_init: bool = False,
        is_function: bool = False,
        parts: tuple[str, str] = ("", ""),
    ) -> None:
        self.kind = kind
        # An argument with things to be noted that nobody saw made, and their kind.
        self.parts, self.part_kind = parts
        self.function = function
        self.args = tuple(args)
        self.inputs = tuple(inputs)
        self.is_init = is_init
        self.is_function = is_function
        self.names: tuple[str, ...] = ()
        self.defaults: dict[str, Any] = {}
        self.rest: Optional[int] = None
        try:
            parameters = inspect.signature(original).parameters.values()
        except (TypeError, ValueError):
            return
        self.names = tuple(it.name for it in parameters)
        for at, it in enumerate(parameters):
            self.defaults[it.name] = it.default
            if it.kind is inspect.Parameter.VAR_POSITIONAL:
                self.rest = at

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if self.rest is None:
            return {**dict(zip(self.names, args)), **kwargs}
        first, rest = args[: self.rest], args[self.rest :]
        return {**dict(zip(self.names, first)), self.names[self.rest]: rest, **kwargs}

    def function_of(self, given: dict[str, Any]) -> Any:
        return given.get(self.function) if self.function is not None else None

    def inputs_of(self, given: dict[str, Any]) -> list[Any]:
        found: list[Any] = []
        for name in self.inputs:
            _flatten(given.get(name), found)
        return found

    def parts_of(self, given: dict[str, Any]) -> list[Any]:
        found: list[Any] = []
        _flatten(given.get(self.parts), found)
        return found

    def name_of(self, given: dict[str, Any], function: Any) -> Optional[str]:
        if self.kind == "dataset.iter":
            return None
        if self.is_init:
            made = given.get(self.names[0]) if self.names else None
            return type(made).__name__ if made is not None else None
        return _name_of(function)

    def args_of(self, given: dict[str, Any]) -> dict[str, Any]:
        found = {}
        for name in self.args:
            value = given.get(name)
            if value is None or value is self.defaults.get(name):
                continue
            if type(value) in (bool, int, float, str):
                found[name] = "AUTOTUNE" if value == -1 and name in _TUNED else value
            else:
                found[name] = type(value).__name__
        return found


def _flatten(it: Any, found: list[Any], depth: int = 0) -> None:
    """What nested tuples hold, as `zip` takes; arrays and the like are left alone."""
    if type(it) in (tuple, list, dict) and depth < 3 and len(it) <= 64:
        for inner in it.values() if type(it) is dict else it:
            _flatten(inner, found, depth + 1)
    elif it is not None and len(found) < 64:
        found.append(it)


_listener: Optional[Sites] = None


def listen(sites: Optional[Sites]) -> None:
    """Who is told from now on. Functions are wrapped once; who listens may change."""
    global _listener
    _listener = sites


def noting(original: Callable[..., Any], what: What) -> Callable[..., Any]:
    """The same function, whose outermost calls from the user's code are noted."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        sites = _listener
        if sites is None or sites.is_over:
            return original(*args, **kwargs)
        inside = sites.begins(what, sys._getframe(1), args, kwargs)
        if inside is None:
            return original(*args, **kwargs)
        number = inside.number
        # Frames hold all that is in them.
        del inside
        try:
            made = original(*args, **kwargs)
        finally:
            sites.ends()
        sites.made(number, args[0] if what.is_init and args else made)
        return made

    return call


def _wrap(owner: Any, name: str, kind: str, **what: Any) -> None:
    """Wraps what a class or a module itself has under this name."""
    own = vars(owner).get(name)
    if own is None:
        return
    function = own.__func__ if isinstance(own, (staticmethod, classmethod)) else own
    if not callable(function):
        return
    wrapped: Any = noting(function, What(kind, function, **what))
    setattr(owner, name, type(own)(wrapped) if function is not own else wrapped)


def _owner(it: type, name: str) -> type:
    """The class that this one has a method from."""
    return next((base for base in it.__mro__[:-1] if name in vars(base)), it)


def _wrap_inherited(owner: Any, name: str, kind: str, **what: Any) -> None:
    """Wraps a method that a class may have from one above it, for this class and those below."""
    original = getattr(owner, name)
    setattr(owner, name, noting(original, What(kind, original, **what)))


_CALLS = ("num_parallel_calls", "deterministic")
# A method of `Dataset`: the argument that is a function, and those that say how it runs. Not
# `apply`: what it is given calls the others.
_STAGES: dict[str, tuple[Optional[str], tuple[str, ...]]] = {
    "batch": (None, ("batch_size", "drop_remainder", *_CALLS)),
    "bucket_by_sequence_length": ("element_length_func", ("drop_remainder",)),
    "cache": (None, ("filename",)),
    "concatenate": (None, ()),
    "enumerate": (None, ()),
    "filter": ("predicate", ()),
    "flat_map": ("map_func", ()),
    "group_by_window": ("reduce_func", ("window_size",)),
    "ignore_errors": (None, ()),
    "interleave": ("map_func", ("cycle_length", "block_length", *_CALLS)),
    "map": ("map_func", _CALLS),
    "padded_batch": (None, ("batch_size", "drop_remainder")),
    "prefetch": (None, ("buffer_size",)),
    "ragged_batch": (None, ("batch_size", "drop_remainder")),
    "rebatch": (None, ("batch_size", "drop_remainder")),
    "rejection_resample": ("class_func", ()),
    "repeat": (None, ("count",)),
    "scan": ("scan_func", ()),
    "shard": (None, ("num_shards", "index")),
    "shuffle": (None, ("buffer_size", "reshuffle_each_iteration")),
    "skip": (None, ("count",)),
    "snapshot": (None, ("path",)),
    "take": (None, ("count",)),
    "take_while": ("predicate", ()),
    "unbatch": (None, ()),
    "unique": (None, ()),
    "window": (None, ("size",)),
    "with_options": (None, ()),
}
_BEGINNINGS: dict[str, tuple[Optional[str], tuple[str, ...], tuple[str, ...]]] = {
    "choose_from_datasets": (None, (), ("datasets",)),
    "from_generator": ("generator", (), ()),
    "from_tensor_slices": (None, (), ()),
    "from_tensors": (None, (), ()),
    "list_files": (None, ("shuffle",), ()),
    "load": (None, (), ()),
    "random": (None, (), ()),
    "range": (None, (), ()),
    "sample_from_datasets": (None, (), ("datasets",)),
    "zip": (None, (), ("args", "datasets")),
}


def _is_dataset(it: Any) -> bool:
    module = sys.modules.get("tensorflow.python.data.ops.dataset_ops")
    return module is not None and (
        isinstance(it, module.DatasetV2) or hasattr(it, "_original_dataset")
    )


def watch_datasets() -> None:
    from tensorflow.python.data.ops import dataset_ops, iterator_ops, readers

    # What `DatasetV1` overrides calls these.
    base = dataset_ops.DatasetV2
    for name, (function, args) in _STAGES.items():
        takes = ("self", "dataset") if name == "concatenate" else ("self",)
        _wrap(base, name, "dataset." + name, function=function, args=args, inputs=takes)
    for name, (function, args, inputs) in _BEGINNINGS.items():
        _wrap(base, name, "dataset." + name, function=function, args=args, inputs=inputs)
    for name in ("TFRecordDatasetV2", "TextLineDatasetV2", "FixedLengthRecordDatasetV2"):
        reader = getattr(readers, name, None)
        if reader is not None:
            kind = "dataset." + name[: -len("V2")]
            args = ("buffer_size", "num_parallel_reads")
            _wrap(reader, "__init__", kind, args=args, inputs=("filenames",), is_init=True)
    iterator = iterator_ops.OwnedIterator
    _wrap(iterator, "__init__", "dataset.iter", inputs=("dataset",), is_init=True)


def watch_tf_functions() -> None:
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    args = ("reduce_retracing", "jit_compile", "autograph")
    function = polymorphic_function.Function
    _wrap(
        function, "__init__", "tf.function", function="python_function", args=args, is_function=True
    )


def watch_jax(jax: Any) -> None:
    from jax._src import pjit

    # Beneath `jax.jit`, which is handed over in many ways: partial, as a decorator, by flax.
    kinds = What("jax.jit", pjit._cpp_pjit, function="fun", is_function=True)
    pjit._cpp_pjit = noting(pjit._cpp_pjit, kinds)
    pmap = jax.pmap
    wrapped = noting(pmap, What("jax.pmap", pmap, function="fun", is_function=True))
    modules: tuple[Any, ...] = (jax, sys.modules.get(getattr(pmap, "__module__", "")))
    for module in modules:
        if module is not None and getattr(module, "pmap", None) is pmap:
            module.pmap = wrapped


def watch_torch(torch: Any) -> None:
    from torch.optim import optimizer
    from torch.utils.data import dataloader

    args = ("batch_size", "num_workers", "pin_memory", "prefetch_factor", "persistent_workers")
    _wrap(dataloader.DataLoader, "__init__", "torch.DataLoader", args=args, is_init=True)
    _wrap(optimizer.Optimizer, "__init__", "optimizer", is_init=True)


def watch_keras(keras: Any) -> None:
    """Keras may run on any of the frameworks; whoever imports it, its own import ends last."""
    model = keras.Model
    compiled = ("run_eagerly", "jit_compile", "steps_per_execution", "optimizer")
    _wrap_inherited(model, "compile", "keras.compile", args=compiled)
    fitted = ("batch_size", "epochs", "steps_per_epoch", "validation_freq", "verbose")
    inputs, parts = ("x", "callbacks"), ("callbacks", "keras.callback")
    _wrap_inherited(model, "fit", "keras.fit", args=fitted, inputs=inputs, parts=parts)
    optimizer = _owner(keras.optimizers.Optimizer, "__init__")
    _wrap(optimizer, "__init__", "optimizer", is_init=True)
    _wrap(keras.callbacks.Callback, "__init__", "keras.callback", is_init=True)
    data = getattr(keras.utils, "PyDataset", None) or keras.utils.Sequence
    workers = ("workers", "use_multiprocessing", "max_queue_size")
    _wrap(data, "__init__", "keras.PyDataset", args=workers, is_init=True)


# Libraries that are watched only for their sites, by the module that is imported.
LIBRARIES: dict[str, Callable[[Any], None]] = {
    "keras": watch_keras,
    "tf_keras": watch_keras,
}
