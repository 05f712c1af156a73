"""`stroboscope.keras_callback` in real Keras, on each of its backends that is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import strobe_json

import stroboscope

MODEL = """
import time
import keras
import numpy
import stroboscope

def pretend_to_log():
    time.sleep(0.02)

class Log(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        pretend_to_log()

model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x, y = numpy.random.rand(400, 8), numpy.random.rand(400, 1)

def fit(*callbacks, **options):
    model.fit(x, y, batch_size=10, verbose=0, callbacks=[Log(), *callbacks], **options)
"""


@pytest.fixture(params=["jax", "tensorflow", "torch"])
def backend(request: pytest.FixtureRequest) -> str:
    for module in ("keras", request.param):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: Keras on {request.param} is not tested")
    return request.param


def run(folder: Path, backend: str, program: str, *before: str) -> subprocess.CompletedProcess[str]:
    script = folder / "train.py"
    script.write_text(MODEL + textwrap.dedent(program))
    done = subprocess.run(
        [*before, sys.executable, str(script)],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        cwd=folder,
        env={**os.environ, "KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stderr
    return done


def timed(folder: Path) -> int:
    return sum(it["steps"] for it in stroboscope.load(folder)["run_step"].to_dicts())


def test_steady_batches_of_fit_are_captured(tmp_path: Path, backend: str):
    run(
        tmp_path,
        backend,
        """
        callback = stroboscope.keras_callback(out="run", steps=8)
        fit(callback, epochs=3, validation_data=(x, y))
        # Once is enough, and the folder is not empty now.
        fit(callback)
        assert callback.capture.load().path, callback.capture.folder
        """,
    )
    out = tmp_path / "run"
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["ended_unix_ns"] > manifest["started_unix_ns"]
    # 120 batches of training; those of validation are no steps, nor are those of the second time.
    assert timed(out) == 119
    report = strobe_json("report", out)
    assert report["beside"]["steps"]["name"] == "batch"
    if backend == "torch":
        # Its profile is kept, and not read yet.
        assert len(list((out / "torch").iterdir())) == 1
        return
    assert report["run"]["frameworks"] == [backend]
    assert 8 <= report["steps"]["count"] <= 9
    assert report["findings"][0]["rule"] == "python-overhead"
    assert "pretend_to_log (train.py:" in report["findings"][0]["title"]


def test_evaluate_and_predict_have_steps_too(tmp_path: Path, backend: str):
    run(
        tmp_path,
        backend,
        """
        class Wait(keras.callbacks.Callback):
            def on_test_batch_end(self, batch, logs=None):
                pretend_to_log()
            on_predict_batch_end = on_test_batch_end
        def callbacks(out):
            return [Wait(), stroboscope.keras_callback(out=out)]
        model.evaluate(x, y, batch_size=10, verbose=0, callbacks=callbacks("evaluate"))
        model.predict(x, batch_size=10, verbose=0, callbacks=callbacks("predict"))
        """,
    )
    assert (timed(tmp_path / "evaluate"), timed(tmp_path / "predict")) == (39, 39)


def test_a_loop_that_raises_is_over(tmp_path: Path, backend: str):
    run(
        tmp_path,
        backend,
        """
        class Fail(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                if batch == 30: raise ValueError("nan")
        callback = stroboscope.keras_callback(out="run", steps=8)
        try:
            fit(Fail(), callback)
        except ValueError:
            pass
        fit(callback)
        with stroboscope.profile("other"):
            fit()
        """,
    )
    # 31 batches began before; the later ones are not of this capture.
    assert timed(tmp_path / "run") == 30


def test_under_strobe_run_it_only_says_where_batches_begin(tmp_path: Path, backend: str):
    out = tmp_path / "run"
    done = run(
        tmp_path,
        backend,
        """
        callback = stroboscope.keras_callback(out="own")
        fit(callback, epochs=3)
        try:
            callback.capture.load()
        except RuntimeError as error:
            print(error)
        """,
        *(str(stroboscope.find_strobe()), "run", "--out", str(out), "--"),
    )
    assert "nothing was captured here" in done.stdout
    assert not (tmp_path / "own").exists()
    (process,) = json.loads((out / "manifest.json").read_text())["processes"]
    assert process["step"] == {"kind": "step", "name": "batch"}
    assert timed(out) == 119
