"""Runs in many threads, and in children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import FEW, ROOT

import stroboscope

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def test_threads_see_the_same():
    def everything(at: int) -> tuple:
        run = stroboscope.load(FEW[at % len(FEW)])
        return (run.report(), [run[name].to_dicts() for name in run])

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(everything, range(20)))
    for at, it in enumerate(seen):
        assert it == seen[at % len(FEW)]


def test_threads_share_a_run():
    run = stroboscope.load(FEW[0])

    def ask(at: int) -> tuple:
        name = run.tables[at % 20]
        return (
            name,
            run[name].to_dicts(),
            run.headline,
            run.sql("SELECT count(*) FROM event").to_dicts(),
        )

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(ask, range(60)))
    for at, it in enumerate(seen):
        assert it == seen[at % 20]


def test_other_threads_run_while_a_query_does(keras):
    """A thread that never gives Python up by itself must do so while it asks."""
    order = []
    about_to_ask = threading.Event()

    def ask():
        about_to_ask.set()
        with pytest.raises(stroboscope.Error):
            keras.sql(ENDLESS, max_seconds=2)
        order.append("answered")

    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread = threading.Thread(target=ask)
        thread.start()
        about_to_ask.wait()
        order.append("meanwhile")
        thread.join()
    finally:
        sys.setswitchinterval(before)
    assert order == ["meanwhile", "answered"]


FORK = """
import os, sys, stroboscope
run = stroboscope.load(sys.argv[1])
child = os.fork()
if child == 0:
    said = 0
    for ask in (lambda: stroboscope.load(sys.argv[1]), run.report, lambda: run["op_time"]):
        try:
            ask()
        except stroboscope.Error as error:
            said += "spawn" in str(error)
    os._exit(said)
_, status = os.waitpid(child, 0)
sys.exit(os.WEXITSTATUS(status))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork on Windows")
def test_a_forked_child_is_told_and_does_not_hang():
    path = ROOT / "testdata/captured/keras_fit"
    command = [sys.executable, "-c", FORK, str(path)]
    with subprocess.Popen(command, start_new_session=True) as forking:
        try:
            assert forking.wait(timeout=60) == 3
        except subprocess.TimeoutExpired:
            os.killpg(forking.pid, signal.SIGKILL)
            raise


SPAWN = """
import multiprocessing, sys, stroboscope

def count(path):
    return stroboscope.load(path).steps.count

if __name__ == "__main__":
    stroboscope.load(sys.argv[1])
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(count, sys.argv[1:] * 3))
"""


def test_spawned_children_read(tmp_path):
    script = tmp_path / "spawn_it.py"
    script.write_text(SPAWN)
    path = ROOT / "testdata/captured/keras_fit"
    command = [sys.executable, str(script), str(path)]
    done = subprocess.run(command, timeout=120, capture_output=True, encoding="utf-8")
    assert done.stdout == "[8, 8, 8]\n", done.stderr
