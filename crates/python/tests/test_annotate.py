"""Names in the frameworks' own profiles; and, where there are none, stand-ins that take notes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace

import pytest

import stroboscope
from stroboscope import _annotate


@pytest.fixture
def noted(monkeypatch):
    """What stand-ins for the three frameworks were told."""
    notes = []

    def region_of(framework):
        class Region:
            def __init__(self, name):
                self.name = name

            def __enter__(self):
                notes.append((framework, "+", self.name))

            def __exit__(self, *_):
                notes.append((framework, "-", self.name))

        return Region

    tf = SimpleNamespace(
        profiler=SimpleNamespace(experimental=SimpleNamespace(Trace=region_of("tensorflow")))
    )
    jax = SimpleNamespace(profiler=SimpleNamespace(TraceAnnotation=region_of("jax")))
    profiler = SimpleNamespace(record_function=region_of("torch"), _is_profiler_enabled=True)
    torch = SimpleNamespace(autograd=SimpleNamespace(profiler=profiler))
    for name, module in (("tensorflow", tf), ("jax", jax), ("torch", torch)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(_annotate, "_known", _annotate._Known())
    return SimpleNamespace(notes=notes, torch=profiler, tf=tf)


def test_every_imported_framework_is_told(noted):
    with stroboscope.annotate("load"):
        noted.notes.append("body")
    assert noted.notes == [
        ("tensorflow", "+", "load"),
        ("jax", "+", "load"),
        ("torch", "+", "load"),
        "body",
        ("torch", "-", "load"),
        ("jax", "-", "load"),
        ("tensorflow", "-", "load"),
    ]


def test_torch_is_told_only_while_it_records(noted):
    noted.torch._is_profiler_enabled = False
    with stroboscope.annotate("load"):
        pass
    assert all(it[0] != "torch" for it in noted.notes)


def test_a_framework_that_is_still_being_imported_is_asked_again(noted, monkeypatch):
    monkeypatch.delitem(sys.modules, "jax")
    monkeypatch.delitem(sys.modules, "torch")
    profiler = noted.tf.__dict__.pop("profiler")
    with stroboscope.annotate("early"):
        pass
    assert noted.notes == []
    noted.tf.profiler = profiler
    with stroboscope.annotate("late"):
        pass
    assert noted.notes == [("tensorflow", "+", "late"), ("tensorflow", "-", "late")]


def only_tensorflow(noted):
    return ["".join(it[1:]) for it in noted.notes if it[0] == "tensorflow"]


def test_functions_keep_what_they_are_and_return(noted):
    @stroboscope.annotate("add")
    def add(a, b=1):
        """Add."""
        return a + b if a > 2 else add(a + 1, b=b)

    assert add(1, b=5) == 8
    assert (add.__name__, add.__doc__) == ("add", "Add.")
    # It calls itself: regions nest.
    assert only_tensorflow(noted) == ["+add", "+add", "+add", "-add", "-add", "-add"]


def test_generators_and_coroutines_are_named_until_they_end(noted):
    @stroboscope.annotate("generate")
    def generate():
        yield 1
        noted.notes.append(("tensorflow", "", "within"))
        yield 2

    @stroboscope.annotate("wait")
    async def wait():
        await asyncio.sleep(0)
        noted.notes.append(("tensorflow", "", "within"))
        return 3

    assert list(generate()) == [1, 2]
    assert asyncio.run(wait()) == 3
    assert only_tensorflow(noted) == [
        "+generate", "within", "-generate", "+wait", "within", "-wait",
    ]  # fmt: skip


def test_what_is_raised_within_goes_on_and_the_region_ends(noted):
    with pytest.raises(KeyError), stroboscope.annotate("fails"):
        raise KeyError
    assert only_tensorflow(noted) == ["+fails", "-fails"]


def test_a_profiler_that_fails_does_not_end_the_training(noted):
    def broken(name):
        raise RuntimeError("profiler is broken")

    noted.tf.profiler.experimental.Trace = broken
    with stroboscope.annotate("load"):
        noted.notes.append("body")
    assert [it[0] for it in noted.notes if it != "body"] == ["jax", "torch", "torch", "jax"]
    assert "body" in noted.notes


def test_no_framework_is_imported():
    code = (
        "import sys, stroboscope\n"
        "with stroboscope.annotate('x'): pass\n"
        "heavy = {'tensorflow', 'jax', 'torch', 'numpy', 'pandas', 'polars', 'pyarrow'}\n"
        "sys.exit(len(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def names_in(path):
    run = stroboscope.load(path)
    query = "SELECT DISTINCT name FROM event WHERE name LIKE 'strobe %' ORDER BY 1"
    return [it["name"] for it in run.sql(query).to_dicts()]


def work():
    @stroboscope.annotate("strobe decorated")
    def decorated():
        return sum(range(1000))

    with stroboscope.annotate("strobe outer"):
        decorated()


def test_names_are_in_a_profile_of_tensorflow(tmp_path):
    tf = pytest.importorskip("tensorflow")
    tf.profiler.experimental.start(str(tmp_path))
    work()
    tf.profiler.experimental.stop()
    assert names_in(tmp_path) == ["strobe decorated", "strobe outer"]


def test_names_are_in_a_profile_of_jax(tmp_path):
    jax = pytest.importorskip("jax")
    with jax.profiler.trace(str(tmp_path)):
        work()
    assert names_in(tmp_path) == ["strobe decorated", "strobe outer"]


def test_names_are_in_a_profile_of_torch():
    torch = pytest.importorskip("torch")
    with torch.profiler.profile() as profile:
        work()
    names = {it.key for it in profile.key_averages() if it.key.startswith("strobe ")}
    assert names == {"strobe decorated", "strobe outer"}
