"""The wheel as it is installed: the program, the types, the examples in the docs."""

from __future__ import annotations

import doctest
import importlib
import importlib.metadata
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, strobe

import stroboscope

PACKAGE = Path(stroboscope.__file__).parent


def test_it_is_the_installed_one():
    assert ROOT not in PACKAGE.parents
    assert (PACKAGE / "py.typed").exists()
    assert (PACKAGE / "_native.pyi").exists()


def test_the_program_is_on_the_path_and_of_the_same_version():
    assert importlib.metadata.version("stroboscope") == stroboscope.__version__
    assert strobe("--version").stdout == f"strobe {stroboscope.__version__}\n"
    folder = str(Path(sys.executable).parent)
    assert Path(shutil.which("strobe", path=folder) or "").samefile(stroboscope.find_strobe())


def test_the_module_is_the_program():
    for arguments in (["--version"], ["report", "nowhere"], ["table", "nowhere", "x"], ["--nope"]):
        command = [sys.executable, "-m", "stroboscope", *arguments]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60)
        direct = strobe(*arguments)
        assert (done.returncode, done.stdout) == (direct.returncode, direct.stdout)
        assert done.stderr == direct.stderr


def test_a_missing_program_is_said(tmp_path):
    copy = tmp_path / "stroboscope"
    shutil.copytree(PACKAGE, copy)
    # Alone, without the environment's own folder of programs.
    code = (
        "import sysconfig, sys; sysconfig.get_path = lambda *_, **__: '/nowhere'\n"
        "sys.argv = ['stroboscope', '--version']\n"
        "import runpy; runpy.run_module('stroboscope', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: the program strobe is not where")
    assert str(copy) in done.stderr


def modules():
    names = [it.name for it in pkgutil.iter_modules([str(PACKAGE)])]
    return [it for it in names if it not in ("_native", "__main__") and not it.startswith("_hook")]


@pytest.mark.parametrize("name", ["", *modules()])
def test_examples_in_the_docs_hold(name, monkeypatch):
    if name == "_table":
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(ROOT)
    module = importlib.import_module(f"stroboscope.{name}".rstrip("."))
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_all_that_is_offered_is_there_and_documented():
    for name in stroboscope.__all__:
        assert getattr(stroboscope, name).__doc__, name


def test_the_stub_says_what_the_native_module_has():
    import ast

    from stroboscope import _native

    stub = ast.parse((PACKAGE / "_native.pyi").read_text(encoding="utf-8"))
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            kind = getattr(_native, node.name)
            said = {it.name for it in node.body if isinstance(it, ast.FunctionDef)}
            there = {
                it
                for it in vars(kind)
                if not it.startswith("__") or it.startswith("__arrow") or it == "__len__"
            }
            assert said == there
    said = {it.name for it in stub.body if isinstance(it, (ast.ClassDef, ast.FunctionDef))}
    assert said == {it for it in dir(_native) if not it.startswith("_")}
