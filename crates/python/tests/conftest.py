"""Profiles to test with, and the wheel's own program to compare with."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import stroboscope

ROOT = Path(__file__).resolve().parents[3]
CAPTURED = sorted(it.parent for it in (ROOT / "testdata/captured").glob("*/measured.json"))
SYNTHETIC = sorted(it.parent for it in (ROOT / "testdata/synthetic").glob("*/truth.json"))
PROFILES = CAPTURED + SYNTHETIC
# Of every kind: a CPU, GPUs, a TPU, two hosts, JAX; each has other tables empty.
FEW = [
    it
    for it in PROFILES
    if it.name in {"keras_fit", "jax_steps", "nccl_two_gpus", "tpu", "two_hosts"}
]
assert len(FEW) == 5 and len(PROFILES) > 30


def strobe(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(stroboscope.find_strobe()), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120)


def strobe_json(*arguments: object) -> object:
    done = strobe(*arguments, "--format", "json")
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=PROFILES, ids=lambda it: it.name)
def profile(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(params=FEW, ids=lambda it: it.name)
def one_of_few(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="session")
def keras() -> stroboscope.Run:
    return stroboscope.load(ROOT / "testdata/captured/keras_fit")


@pytest.fixture(scope="session")
def sampled() -> stroboscope.Run:
    """A run folder of ``strobe run``, with stacks."""
    return stroboscope.load(ROOT / "testdata/captured/run_folder")
