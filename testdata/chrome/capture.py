"""Captures the small PyTorch traces of this folder, each with a clock beside it that knows nothing of the profile.

usage: PYTHON capture.py [NAME ...]      PYTHON needs torch
"""
import gzip
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
STEPS = 6


def torch_unrolled():
    """A recurrent cell called from a Python loop over 24 time steps: its ops are dispatched one by one."""
    import torch
    cell, head = torch.nn.RNNCell(16, 16), torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], 0.01)
    x, y = torch.randn(8, 24, 16), torch.randn(8, 1)

    def step(part):
        with part("eager"):
            optimizer.zero_grad()
            h = torch.zeros(8, 16)
            for at in range(24):
                h = cell(x[:, at], h)
            torch.nn.functional.mse_loss(head(h), y).backward()
            optimizer.step()

    return step


def torch_slow_loader():
    """A DataLoader without workers, whose examples are made in Python."""
    import torch

    class Waves(torch.utils.data.Dataset):
        def __len__(self):
            return 10_000

        def __getitem__(self, at):
            return torch.tensor([((at * it) % 97) / 97 for it in range(6000)])

    batches = iter(torch.utils.data.DataLoader(Waves(), batch_size=16))
    model = torch.nn.Sequential(torch.nn.Linear(6000, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(part):
        with part("input"):
            x = next(batches)
        with part("eager"):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()

    return step


def torch_recompiled():
    """torch.compile for one shape at a time, and a new shape in each step."""
    import torch
    torch._dynamo.config.cache_size_limit = 1000
    model = torch.nn.Linear(16, 16)
    compiled = torch.compile(model, backend="eager", dynamic=False)
    lengths = iter(range(4, 1000))

    def step(part):
        with part("compute_incl_compile"):
            compiled(torch.ones(next(lengths), 16)).sum().backward()

    return step


def healthy_torch():
    """A convolutional network on data in memory: nothing is wrong."""
    import torch
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3),
                                torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32 * 28 * 28, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, foreach=True)
    x, y = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))

    def step(part):
        with part("eager"):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

    return step


class Clock:
    def __init__(self):
        self.starts, self.parts = [], {}

    def part(self, name):
        clock = self

        class Part:
            def __enter__(self):
                self.begun = time.perf_counter()

            def __exit__(self, *_):
                clock.parts[name] = clock.parts.get(name, 0) + time.perf_counter() - self.begun

        return Part()


def capture(name, make):
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule
    torch.manual_seed(0)
    step, clock, out = make(), Clock(), HERE / name
    for _ in range(5):
        step(clock.part)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True,
                     schedule=schedule(wait=0, warmup=1, active=STEPS + 1),
                     on_trace_ready=lambda it: it.export_chrome_trace(str(file))) as profiler:
            step(clock.part)
            profiler.step()
            clock.parts = {}
            for _ in range(STEPS):
                clock.starts.append(time.perf_counter())
                step(clock.part)
                profiler.step()
            clock.starts.append(time.perf_counter())
            step(Clock().part)
            profiler.step()
        trace = json.loads(file.read_text(encoding="utf-8"))
    trace["traceName"] = "trace.json"
    text = json.dumps(trace, separators=(",", ":"), ensure_ascii=False)
    with gzip.GzipFile(out / "worker0.pt.trace.json.gz", "wb", mtime=0) as packed:
        packed.write(text.encode())
    times = [1e3 * (b - a) for a, b in zip(clock.starts, clock.starts[1:])]
    total = sum(times) / 1e3
    measured = {"torch": torch.__version__, "step_ms": [round(it, 4) for it in times],
                "fraction": {part: round(spent / total, 4) for part, spent in clock.parts.items()}}
    (out / "measured.json").write_text(json.dumps(measured, indent=1) + "\n")
    print(name, measured, f"{(out / 'worker0.pt.trace.json.gz').stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    kinds = {it.__name__: it for it in (torch_unrolled, torch_slow_loader, torch_recompiled, healthy_torch)}
    for name in sys.argv[1:] or kinds:
        capture(name, kinds[name])
