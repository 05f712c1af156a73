"""`strobe run` and `stroboscope.profile` on real programs; with JAX where it is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import stroboscope

LOOP = """
import time
import jax, jax.numpy as jnp

@jax.jit
def train_step(w):
    return w - 0.01 * (w @ w)

def pretend_to_log():
    time.sleep(0.02)

def loop(steps, each=lambda: None):
    w = jnp.ones((64, 64)) * 1e-3
    for _ in range(steps):
        each()
        w = train_step(w)
        w.block_until_ready()
        pretend_to_log()
"""


@pytest.fixture
def jax() -> None:
    pytest.importorskip("jax", reason="JAX is not installed: captures of it are not tested")


def run(
    folder: Path, program: str, *options: str, env: dict[str, str] | None = None
) -> tuple[subprocess.CompletedProcess[bytes], Path]:
    """Runs a program under `strobe run`; answers how it ended, and its run folder."""
    script = folder / "train.py"
    script.write_text(textwrap.dedent(program))
    out = folder / "run"
    command = [str(stroboscope.find_strobe()), "run", "--out", str(out), *options, "--"]
    done = subprocess.run(
        [*command, sys.executable, str(script)],
        capture_output=True,
        timeout=120,
        cwd=folder,
        env={**os.environ, **(env or {})},
    )
    return done, out


def manifest(out: Path) -> dict[str, object]:
    return json.loads((out / "manifest.json").read_text())


def test_a_program_without_a_framework_is_left_alone(tmp_path: Path):
    done, out = run(
        tmp_path,
        r"""
        import sys
        sys.stdout.buffer.write(bytes(range(256)))
        sys.exit(41)
        """,
    )
    assert done.stdout == bytes(range(256))
    assert done.returncode == 41
    assert b"the command ended with code 41; there is nothing to report" in done.stderr
    assert manifest(out)["exit"] == {"code": 41}


def test_the_end_by_a_signal_is_passed_on(tmp_path: Path):
    done, out = run(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -signal.SIGKILL
    assert manifest(out)["exit"] == {"signal": 9}


def test_a_signal_reaches_the_program(tmp_path: Path):
    script = tmp_path / "train.py"
    script.write_text(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), sys.exit(5)))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    out = tmp_path / "run"
    command = [
        str(stroboscope.find_strobe()),
        "run",
        "--out",
        str(out),
        "--",
        sys.executable,
        str(script),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=60)
    assert (rest, process.returncode) == (b"saved\n", 5)


def test_a_missing_command_is_said_as_a_shell_says_it(tmp_path: Path):
    command = [
        str(stroboscope.find_strobe()),
        "run",
        "--out",
        str(tmp_path / "run"),
        "--",
        "no-such-command",
    ]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == 127
    assert b"there is no such command" in done.stderr
    assert not (tmp_path / "run").exists()


def test_what_python_sees_is_as_without(tmp_path: Path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.theirs = 1\n")
    program = "import sys; print(sys.path[1:], theirs, sys.modules['sitecustomize'].__file__)"
    env = {"PYTHONPATH": str(tmp_path / "site")}
    done, _ = run(tmp_path, program, env=env)
    bare = subprocess.run(
        [sys.executable, str(tmp_path / "train.py")], capture_output=True, env={**os.environ, **env}
    )
    assert done.stdout == bare.stdout and b" 1 " in bare.stdout


def test_secrets_stay_out_of_the_run_folder(tmp_path: Path):
    _, out = run(tmp_path, "pass", env={"MY_API_KEY": "hunter2hunter2"})
    kept = [it for it in out.rglob("*") if it.is_file()]
    assert kept and all(b"hunter2hunter2" not in it.read_bytes() for it in kept)
    assert "MY_API_KEY" in manifest(out)["environment"]["names"]  # type: ignore[index]


def test_steady_steps_are_captured_and_the_line_is_named(tmp_path: Path, jax: None):
    done, out = run(tmp_path, LOOP + "\nloop(150)\nprint('done')\n")
    assert (done.stdout, done.returncode) == (b"done\n", 0), done.stderr
    captured = stroboscope.load(out)
    assert captured.steps.count >= 10
    first = captured.findings[0]
    assert first.rule == "python-overhead"
    assert "pretend_to_log (train.py:" in first.title
    steps = captured["run_step"].to_dicts()
    assert len(steps) > captured.steps.count
    assert {it["profiled"] for it in steps} >= {"no", "yes"}
    (process,) = manifest(out)["processes"]  # type: ignore[misc]
    assert process["frameworks"].keys() == {"jax"}
    assert [it["what"] for it in process["said"]][:3] == ["window-start", "window-end", "saved"]


def steps_named(out: Path) -> set[str]:
    """By what the steps of a run were found."""
    (path,) = out.glob("python-*.jsonl")
    records = map(json.loads, path.read_text().splitlines()[1:])
    return {it[3] for it in records if it[0] == "step-key"}


def test_steps_of_a_program_compiled_ahead_are_seen(tmp_path: Path, jax: None):
    ahead = "\ntrain_step = train_step.lower(jnp.ones((64, 64))).compile()\n"
    done, out = run(tmp_path, LOOP + ahead + "loop(60)\n", "--steps", "5")
    assert done.returncode == 0, done.stderr
    assert steps_named(out) == {"train_step"}
    captured = stroboscope.load(out)
    assert captured.steps.count >= 5
    assert len(captured["run_step"].to_dicts()) == 59


def test_three_steps_are_timed_and_told(tmp_path: Path, jax: None):
    done, out = run(tmp_path, LOOP + "loop(3)\n")
    assert done.returncode == 0, done.stderr
    assert steps_named(out) == {"train_step"}
    said = " ".join(done.stderr.decode().split())
    assert "the program ended after 3 steps, before they were steady" in said
    assert "Steps: " in said and "(train_step)" in said and "The run on " in said
    assert "nothing was captured" not in said


def test_a_program_that_profiles_itself_gets_that_profile(tmp_path: Path, jax: None):
    profiled = """
def each():
    global n
    n += 1
    if n == 2: jax.profiler.start_trace("logs")
n = 0
loop(16, each)
jax.profiler.stop_trace()
"""
    done, out = run(tmp_path, LOOP + profiled)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.decode().split())
    assert "The program took this profile itself, in " in said
    assert "Each step takes " in said and " of 16 steps" in said
    assert list((out / "profile").rglob("*.xplane.pb"))
    assert list((tmp_path / "logs").rglob("*.xplane.pb")), "the program keeps its own"


def test_steps_of_a_session_are_seen(tmp_path: Path):
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed: its sessions are not tested")
    done, out = run(
        tmp_path,
        """
        import time
        import tensorflow.compat.v1 as tf
        tf.disable_eager_execution()
        w = tf.get_variable("w", [64, 64])
        loss = tf.reduce_mean(tf.matmul(w, w), name="loss")
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for n in range(60):
                session.run([train, loss])
                if n % 10 == 0:
                    session.run(fetches=loss)
                time.sleep(0.02)
        print("done")
        """,
        "--steps",
        "5",
    )
    assert (done.stdout, done.returncode) == (b"done\n", 0), done.stderr
    assert steps_named(out) == {"GradientDescent"}
    captured = stroboscope.load(out)
    assert captured.steps.count >= 5
    assert len(captured["run_step"].to_dicts()) == 59


TORCH = """
import time
import torch
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)

def step():
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    time.sleep(0.02)
"""


@pytest.fixture
def torch() -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: captures of it are not tested")


def test_pytorch_is_captured(tmp_path: Path, torch: None):
    done, out = run(tmp_path, TORCH + "for _ in range(60): step()\nprint('done')\n", "--steps", "5")
    assert (done.stdout, done.returncode) == (b"done\n", 0), done.stderr
    assert steps_named(out) == {"SGD"}
    (trace,) = (out / "torch").glob("*.pt.trace.json")
    assert "aten::addmm" in trace.read_text()


@pytest.mark.parametrize("before", [0, 20])
def test_pytorch_s_profiler_is_the_program_s_first(tmp_path: Path, torch: None, before: int):
    """Whether it begins before our window or during it, and while its schedule waits."""
    program = f"""
from torch import profiler
for _ in range({before}): step()
schedule = profiler.schedule(wait=10, warmup=2, active=5, repeat=2)
seen = []
with profiler.profile(schedule=schedule, on_trace_ready=lambda it: seen.append(len(it.events()))) as it:
    for _ in range(40):
        step()
        it.step()
with torch.autograd.profiler.profile() as it:
    step()
print(len(seen), min(seen) > 0, len(it.function_events) > 0)
"""
    done, out = run(tmp_path, TORCH + program)
    assert (done.stdout, done.returncode) == (b"2 True True\n", 0), done.stderr
    (process,) = manifest(out)["processes"]  # type: ignore[misc]
    assert "own-profiler" in [it["what"] for it in process["said"]]


def test_as_many_steps_as_asked_for(tmp_path: Path, jax: None):
    done, out = run(tmp_path, LOOP + "\nloop(60)\n", "--steps", "7", "--warmup", "20")
    steps = stroboscope.load(out)["run_step"].to_dicts()
    profiled = [it["step"] for it in steps if it["profiled"] == "yes"]
    assert done.returncode == 0
    assert min(profiled) in (20, 21, 22) and len(profiled) == 7


def test_a_run_can_end_after_its_capture(tmp_path: Path, jax: None):
    done, out = run(tmp_path, LOOP + "\nloop(100_000)\n", "--stop-after", "--steps", "5")
    assert done.returncode == 0, done.stderr
    assert stroboscope.load(out).steps.count >= 5


def test_without_a_capture_steps_are_timed(tmp_path: Path, jax: None):
    done, out = run(tmp_path, LOOP + "\nloop(60)\n", "--no-capture")
    assert b"60 steps timed, none profiled" in done.stderr
    assert not (out / "profile").exists()


def test_a_program_that_raises_leaves_its_capture(tmp_path: Path, jax: None):
    program = (
        LOOP
        + "\nn = iter(range(1000))\ndef each():\n    if next(n) == 70: raise ValueError('nan')\nloop(100, each)\n"
    )
    done, out = run(tmp_path, program)
    assert done.returncode == 1 and b"ValueError: nan" in done.stderr
    assert stroboscope.load(out).steps.count >= 3


def test_steps_said_outright(tmp_path: Path, jax: None):
    script = tmp_path / "inside.py"
    script.write_text(
        LOOP
        + textwrap.dedent(
            f"""
            import stroboscope
            with stroboscope.profile({str(tmp_path / "out")!r}, steps=5) as capture:
                loop(40, stroboscope.step)
            loop(3, stroboscope.step)
            run = capture.load()
            print(run.steps.count, run.findings[0].rule)
            # Compiled before anybody watched.
            with stroboscope.profile({str(tmp_path / "again")!r}) as again:
                loop(150)
            run = again.load()
            print(run.steps.count >= 5, len(run["run_step"].to_dicts()))
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr.decode()
    first, second = done.stdout.decode().splitlines()
    assert first.endswith("python-overhead") and int(first.split()[0]) >= 5
    # Python tells of calls from 3.12 on; before, the window opens by time.
    assert second == ("True 149" if sys.version_info >= (3, 12) else "True 0")


def test_steps_that_begin_late_replace_a_window_by_time(tmp_path: Path, jax: None):
    script = tmp_path / "late.py"
    script.write_text(
        LOOP
        + textwrap.dedent(
            f"""
            import stroboscope
            with stroboscope.profile({str(tmp_path / "out")!r}, steps=5) as capture:
                time.sleep(3)
                loop(60, stroboscope.step)
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr.decode()
    log = next((tmp_path / "out").glob("python-*.jsonl")).read_text()
    assert "no step was seen" in log
    assert stroboscope.load(tmp_path / "out").steps.count >= 5


def test_a_capture_needs_a_framework():
    if "jax" in sys.modules or "tensorflow" in sys.modules or "torch" in sys.modules:
        pytest.skip("a framework is imported already")
    with pytest.raises(RuntimeError, match="import TensorFlow, JAX or PyTorch before"):
        stroboscope.profile().__enter__()


def test_step_without_a_capture_does_nothing():
    stroboscope.step()
