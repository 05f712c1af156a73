"""The user's own lines: noted once, cheaply, and without a change to what is called."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import runpy
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

import stroboscope
from stroboscope._capture import log, sites


class Dataset:
    """Stands for a framework's class: most of its methods make another one."""

    def __init__(self, inputs: Any = ()) -> None:
        self.inputs = inputs

    def map(self, map_func: Any, num_parallel_calls: Any = None) -> Dataset:
        """Applies a function."""
        if map_func is None:
            raise ValueError("no function")
        return Dataset((self,))

    def twice(self) -> Dataset:
        """A part of it is another method."""
        return self.map(len).map(len)

    def within(self, make: Callable[[], Dataset]) -> Dataset:
        make()
        return Dataset((self,))

    @staticmethod
    def range(*args: Any) -> Dataset:
        return Dataset()


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Noted]:
    for name, what in {
        "map": {"function": "map_func", "args": ("num_parallel_calls",), "inputs": ("self",)},
        "twice": {"inputs": ("self",)},
        "within": {"function": "make", "inputs": ("self",)},
        "range": {},
    }.items():
        monkeypatch.setattr(Dataset, name, vars(Dataset)[name])
        sites._wrap(Dataset, name, "dataset." + name, **what)  # type: ignore[arg-type]
    it = Noted(tmp_path)
    sites.listen(it.sites)
    yield it
    sites.listen(None)


class Noted:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = log.Log(str(folder))
        self.sites = sites.Sites(self.log)

    def run(self, program: str, **names: Any) -> dict[str, Any]:
        """Runs a program that is a user's: a file of its own."""
        path = self.folder / "train.py"
        path.write_text(textwrap.dedent(program))
        return runpy.run_path(str(path), {"Dataset": Dataset, **names})

    def records(self, kind: str = "site") -> list[list[Any]]:
        self.sites.write_out()
        self.log.flush()
        path = Path(self.log.path)
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        return [it for it in map(json.loads, lines) if it[0] == kind]

    def places(self) -> list[tuple[Any, ...]]:
        return [(it[2], it[3], it[5]) for it in self.records()]


def test_a_place_is_noted_once_with_its_text(noted: Noted):
    noted.run(
        """
        def augment(x):
            return x

        for _ in range(50):
            ds = Dataset.range(3)
            ds = ds.map(
                augment,  # a comment (
                num_parallel_calls=-1,
            ).map(lambda x: x)
        """
    )
    first, second, third = noted.records()
    assert first[1:7] == [0, "dataset.range", None, str(noted.folder / "train.py"), 6, 6]
    assert second[1:4] == [1, "dataset.map", "augment"]
    assert second[6] == 10 and second[8]["end_col"] == 5
    text = second[7].splitlines()
    assert text[0] == "    ds = ds.map(" and text[-1] == "    ).map(lambda x: x)"
    assert second[8]["text_line"] == 7
    assert second[8]["call"] == "ds.map(augment, num_parallel_calls=-1)"
    assert second[8]["args"] == {"num_parallel_calls": "AUTOTUNE"}
    assert second[8]["inputs"] == [0]
    assert second[8]["defined"] == [str(noted.folder / "train.py"), 2]
    assert third[3] == "lambda" and third[8]["call"] == ".map(lambda x: x)"
    assert third[8]["inputs"] == [1] and "args" not in third[8]


def test_a_library_stands_for_the_line_that_called_it(noted: Noted):
    folder = noted.folder / "site-packages"
    folder.mkdir()
    (folder / "library.py").write_text("def load(make):\n    return make(3)\n")
    library = runpy.run_path(str(folder / "library.py"))
    noted.run("ds = load(Dataset.range)\n", load=library["load"])
    (site,) = noted.records()
    assert (site[2], site[5]) == ("dataset.range", 1)
    # What is called there is something else.
    assert site[8]["call"] == "load(Dataset.range)"


def test_parts_of_a_noted_call_are_not_noted(noted: Noted, monkeypatch: pytest.MonkeyPatch):
    # The class above is the library's here.
    monkeypatch.setitem(sites._own, Dataset.map.__wrapped__.__code__.co_filename, False)  # type: ignore[attr-defined]
    noted.run(
        """
        ds = Dataset.range(3).twice()
        ds = ds.within(lambda: Dataset.range(4).map(len))
        """
    )
    records = noted.records()
    assert [it[2] for it in records] == [
        *("dataset.range", "dataset.twice", "dataset.within", "dataset.range", "dataset.map")
    ]
    # But those that the user's function makes are, with what is around them.
    assert [it[8].get("inside") for it in records] == [None, None, None, 2, 2]
    assert records[4][8]["inputs"] == [3] and records[2][8]["inputs"] == [1]


def test_an_object_of_the_users_class_is_made_where_they_make_it(
    noted: Noted, monkeypatch: pytest.MonkeyPatch
):
    class Callback:
        def __init__(self) -> None:
            pass

    monkeypatch.setattr(Callback, "__init__", Callback.__init__)
    sites._wrap(Callback, "__init__", "keras.callback", is_init=True)
    noted.run(
        """
        class Log(Callback):
            def __init__(self, n):
                super().__init__()

            def on_train_batch_end(self, batch):
                pass

        log = Log(3)
        """,
        Callback=Callback,
    )
    (site,) = noted.records()
    assert site[2:4] == ["keras.callback", "Log"] and site[5] == 9
    assert site[8]["defined"][1] == 6


def test_what_is_wrapped_looks_and_works_as_before(noted: Noted):
    assert Dataset.map.__doc__ == "Applies a function." and Dataset.map.__name__ == "map"
    assert list(inspect.signature(Dataset.map).parameters) == [
        "self",
        "map_func",
        "num_parallel_calls",
    ]
    assert isinstance(vars(Dataset)["range"], staticmethod)
    assert pickle.loads(pickle.dumps(Dataset.map)) is Dataset.map
    with pytest.raises(ValueError, match="no function"):
        Dataset.range(1).map(None)
    assert noted.sites._inside() == []
    made = Dataset.range(1).map(len)
    assert type(made) is Dataset and vars(made).keys() == {"inputs"}


def test_what_was_made_is_not_kept(noted: Noted):
    for _ in range(100):
        Dataset.range(1).map(len)
    assert len(noted.sites._made) <= 2


def test_a_failure_is_written_down_and_touches_nothing(
    noted: Noted, monkeypatch: pytest.MonkeyPatch
):
    def fails(*_: Any) -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setattr(sites, "_place", fails)
    assert isinstance(Dataset.range(1).map(len), Dataset)
    assert noted.sites.is_over and noted.records() == []
    (said,) = noted.records("said")
    assert said[2:] == ["sites-failed", "dataset.range: RuntimeError: on purpose"]


def test_a_program_that_writes_programs_is_noted_up_to_a_number(
    noted: Noted, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sites, "MOST_SITES", 5)
    noted.run("\n".join("Dataset.range(%d)" % it for it in range(9)))
    assert len(noted.records()) == 5
    (said,) = noted.records("said")
    assert said[3] == "more than 5: the others are not noted"


def test_sources_that_cannot_be_read_leave_the_line(noted: Noted):
    path = noted.folder / "gone.py"
    exec(compile("\nDataset.range(1)\n", str(path), "exec"), {"Dataset": Dataset})
    (site,) = noted.records()
    assert site[4:8] == [str(path), 2, 2, ""]


def test_a_secret_in_a_program_stays_there(noted: Noted):
    noted.run(
        """
        Dataset.range({"api_key": "hunter2hunter2"})
        Dataset.range(dict(password='hunter2hunter2'))
        Dataset.range("hf_hunter2hunter2hunter2hunter2")
        Dataset.range(tokenizer_length := 3)
        """
    )
    assert [it[7] for it in noted.records()] == ["", "", "", "Dataset.range(tokenizer_length := 3)"]
    assert "hunter2" not in Path(noted.log.path).read_text()


def test_an_older_python_knows_the_line(noted: Noted, monkeypatch: pytest.MonkeyPatch):
    position = sites.Place.position

    def without_columns(place: sites.Place) -> sites.Position:
        return sites.Position(position(place).line, None, None)

    monkeypatch.setattr(sites.Place, "position", without_columns)
    noted.run("ds = Dataset.range(3).map(\n    len)\nds.map(len).map(len)\n")
    first, second, *others = noted.records()
    assert (first[8]["call"], first[8]["end_col"]) == ("Dataset.range(3)", 21)
    assert (second[8]["call"], second[6], second[8]["end_col"]) == (".map(len)", 2, 8)
    assert all("call" not in it[8] for it in others)


def loops(noted: Noted) -> list[tuple[Any, ...]]:
    """Name, lines, head, and what is known of each loop."""
    records = [it for it in noted.records() if it[2] == "loop"]
    return [
        (it[3], it[5], it[6], it[7].strip(), it[8]["args"], it[8].get("defined")) for it in records
    ]


def take_step(noted: Noted) -> Callable[..., None]:
    return lambda *_: noted.sites.step(sys._getframe(1))


def test_the_loop_around_a_step_is_noted_with_the_function_it_calls(noted: Noted):
    noted.run(
        """
        def train_step(x):
            for weight in (1, 2):
                weight += x
            take(x)

        def epoch(n):
            for step in range(2):
                train_step(step)
                print(end="")

        for n in range(2):
            epoch(n)
        """,
        take=take_step(noted),
    )
    (loop,) = loops(noted)
    file = str(noted.folder / "train.py")
    args = {"function": "epoch", "step_line": 9}
    assert loop == ("train_step", 8, 10, "for step in range(2):", args, [file, 2])


def test_a_step_in_the_loop_itself_has_no_function(noted: Noted):
    noted.run("while True:\n    take(1)\n    break\n", take=take_step(noted))
    assert loops(noted) == [
        (None, 1, 3, "while True:", {"function": "<module>", "step_line": 2}, None)
    ]


@pytest.mark.parametrize(
    "program",
    [
        "take(1)\n",
        "for _ in range(2):\n    all = [take(it) for it in (1, 2)]\n",
        "for _ in ():\n    pass\nelse:\n    take(1)\n",
        "def f():\n    take(1)\nfor _ in range(2):\n    pass\nf()\n",
    ],
)
def test_where_no_loop_is_certain_none_is_noted(noted: Noted, program: str):
    noted.run(program, take=take_step(noted))
    assert loops(noted) == []


def test_a_generator_is_not_the_loop(noted: Noted):
    noted.run(
        """
        def batches():
            for x in (1, 2):
                take(x)
                yield x

        for step, x in enumerate(batches()):
            x + 1
        """,
        take=take_step(noted),
    )
    assert [it[:2] for it in loops(noted)] == [(None, 7)]


def test_a_forked_child_notes_nothing(noted: Noted):
    noted.sites.forget()
    Dataset.range(1)
    assert noted.records() == []


def test_noting_again_costs_little(noted: Noted):
    """A generous limit: it is ten microseconds, beside a stage's hundreds."""
    import time
    import timeit

    ds = Dataset.range(1)
    n = 2000
    # Not by the wall clock: others may use the machine.
    times = timeit.repeat(lambda: ds.map(len), number=n, repeat=5, timer=time.thread_time)
    assert min(times) / n < 200e-6


# With frameworks, under `strobe run`.


def run(folder: Path, program: str) -> tuple[subprocess.CompletedProcess[bytes], Path]:
    script = folder / "train.py"
    script.write_text(textwrap.dedent(program))
    out = folder / "run"
    command = [str(stroboscope.find_strobe()), "run", "--out", str(out), "--"]
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [*command, sys.executable, str(script)],
        capture_output=True,
        timeout=240,
        cwd=folder,
        env=env,
    )
    return done, out


def code_sites(out: Path) -> list[dict[str, Any]]:
    return stroboscope.load(out)["code_site"].to_dicts()


KERAS = """
import numpy as np
import tensorflow as tf
import keras

def augment(x, y):
    # Chance keeps TensorFlow from running it in parallel by itself.
    x = x + tf.random.uniform(x.shape)
    for _ in range(3):
        x = tf.linalg.matmul(x, x)
    return x / (1.0 + tf.abs(x)), y

class Log(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        pass

def make(x, y, training):
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    if training:
        ds = ds.map(augment)
    else:
        ds = ds.map(lambda x, y: (x, y))
    return ds.batch(4).repeat()

x, y = np.zeros((64, 200, 200), "float32"), np.zeros(64, "int64")
model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(2)])
model.compile(
    optimizer=keras.optimizers.SGD(1e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
train, test = make(x, y, True), make(x, y, False)
model.fit(train, steps_per_epoch=150, validation_data=test, validation_steps=2, verbose=0,
          callbacks=[Log()])
print("done")
"""


@pytest.fixture(scope="module")
def keras_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the program and of its run."""
    pytest.importorskip(
        "tensorflow", reason="TensorFlow is not installed: its lines are not tested"
    )
    pytest.importorskip("keras", reason="Keras is not installed: its lines are not tested")
    folder = tmp_path_factory.mktemp("keras")
    done, _ = run(folder, KERAS)
    assert (done.stdout, done.returncode) == (b"done\n", 0), done.stderr
    return folder


def test_lines_of_a_keras_program(keras_run: Path):
    out = keras_run / "run"
    rows = code_sites(out)
    found = [(it["kind"], it["name"], it["line"]) for it in rows]
    assert ("dataset.map", "augment", 20) in found
    assert ("dataset.batch", None, 23) in found
    assert ("optimizer", "SGD", 28) in found
    assert ("keras.compile", None, 27) in found
    assert ("keras.callback", "Log", 33) in found
    (fit,) = [it for it in rows if it["kind"] == "keras.fit"]
    # The dataset that is trained on, and the callback.
    kinds = [rows[int(it)]["kind"] for it in fit["inputs"].split()]
    assert kinds == ["dataset.repeat", "keras.callback"] and fit["text"].startswith(
        "model.fit(train,"
    )
    assert not [it for it in rows if it["file"] != str(keras_run / "train.py")]
    assert not (out / "hook-errors.txt").exists()


def test_the_map_of_a_real_profile_becomes_a_diff(keras_run: Path):
    script = keras_run / "train.py"
    before = script.read_text()

    def diff() -> subprocess.CompletedProcess[str]:
        command = [str(stroboscope.find_strobe()), "report", str(keras_run / "run"), "--diff"]
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", cwd=keras_run, timeout=60
        )

    answer = diff()
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("--- a/train.py\n+++ b/train.py\n@@ ")
    lines = answer.stdout.splitlines()[2:]
    assert [it for it in lines if it[0] in "+-"] == [
        "-        ds = ds.map(augment)",
        "+        ds = ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)",
    ]
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(keras_run.parent)}
    apply = ["git", "apply", "-"]
    subprocess.run(apply, input=answer.stdout, encoding="utf-8", cwd=keras_run, env=env, check=True)
    parallel = "ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)"
    assert script.read_text() == before.replace("ds.map(augment)", parallel)
    # Now the file is another one than the run saw.
    again = diff()
    assert (again.returncode, again.stdout) == (
        3,
        "",
    ) and "has changed since the run" in again.stderr


SAME = """
import inspect, pickle
import numpy as np
import tensorflow as tf

class Mine(tf.data.Dataset):
    pass

D = tf.data.Dataset
print(inspect.signature(D.map), D.map.__doc__[:40], D.from_generator.__name__, D.__mro__)
print(isinstance(D.range(3), D), isinstance(vars(D)["range"], staticmethod), type(D.range(3).map(lambda x: x)))
print(list(D.range(3).map(lambda x: x + 1).as_numpy_iterator()))
print(list(D.zip((D.range(2), D.range(2))).as_numpy_iterator(), ))
print(list(D.from_tensor_slices([1, 2]).interleave(lambda n: D.range(tf.cast(n, tf.int64)).map(lambda i: i * 2)).as_numpy_iterator()))
v1 = tf.compat.v1.data.Dataset
print(type(v1.range(3).map(lambda x: x)), isinstance(v1.range(2), D))
print(list(v1.range(3).batch(2).as_numpy_iterator()))
try:
    D.range(3).map(4)
except Exception as error:
    print(type(error))

@tf.function
def total(n):
    t = tf.constant(0, tf.int64)
    for i in D.range(n).map(lambda j: j * 2):
        t += i
    return t

class Net(tf.Module):
    @tf.function(reduce_retracing=True)
    def step(self, x):
        "Says."
        return x * 2

print(total(tf.constant(4, tf.int64)), type(total), total.python_function.__name__)
net = Net()
print(net.step(tf.constant(2.0)), net.step.python_function.__doc__, type(Net.step))
print(D.range(3).apply(lambda d: d.map(lambda x: x)).cardinality())
print(list(tf.data.experimental.make_csv_dataset.__kwdefaults__ or ()))
print(tf.nest.map_structure(lambda x: x, D.range(3).element_spec))
"""


def test_tensorflow_is_as_without(tmp_path: Path):
    pytest.importorskip(
        "tensorflow", reason="TensorFlow is not installed: its lines are not tested"
    )
    done, out = run(tmp_path, SAME)
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    bare = subprocess.run([sys.executable, "train.py"], capture_output=True, cwd=tmp_path, env=env)
    assert done.stdout == bare.stdout and bare.returncode == done.returncode == 0, done.stderr
    log = "".join(it.read_text() for it in out.glob("python-*.jsonl"))
    assert '"sites-failed"' not in log and '"not-watched"' not in log
    rows = [json.loads(it) for it in log.splitlines() if it.startswith('["site"')]
    by_kind = {(it[2], it[3], it[5]) for it in rows}
    assert ("tf.function", "total", 23) in by_kind and ("tf.function", "step", 31) in by_kind
    # Rewritten by TensorFlow: the line is the user's all the same.
    assert ("dataset.map", "lambda", 26) in by_kind
    inner = [it for it in rows if it[8].get("inside") is not None and it[2] == "dataset.map"]
    assert [(it[5], it[4]) for it in inner] == [(14, str(tmp_path / "train.py"))]


def test_lines_of_jax(tmp_path: Path):
    pytest.importorskip("jax", reason="JAX is not installed: its lines are not tested")
    program = """
    import pickle
    from functools import partial
    import jax, jax.numpy as jnp

    @jax.jit
    def train_step(w):
        return w - 0.01 * (w @ w)

    @partial(jax.jit, static_argnums=1)
    def scaled(w, n):
        return w * n

    def plain(w):
        return w + 1

    jitted = jax.jit(plain)
    each = jax.pmap(lambda it: it * 2)
    w = train_step(scaled(jitted(jnp.ones((4, 4))), 2))
    print(w.shape, each(w[None]).shape, pickle.loads(pickle.dumps(jax.pmap)) is jax.pmap)
    """
    done, out = run(tmp_path, program)
    assert (done.stdout, done.returncode) == (b"(4, 4) (1, 4, 4) True\n", 0), done.stderr
    log = "".join(it.read_text() for it in out.glob("python-*.jsonl"))
    rows = [json.loads(it) for it in log.splitlines() if it.startswith('["site"')]
    assert [(it[2], it[3], it[5]) for it in rows] == [
        ("jax.jit", "train_step", 6),
        ("jax.jit", "scaled", 10),
        ("jax.jit", "plain", 17),
        ("jax.pmap", "lambda", 18),
    ]
    assert rows[0][7] == "@jax.jit\ndef train_step(w):"
