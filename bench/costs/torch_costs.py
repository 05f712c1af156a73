"""What PyTorch's ops, their recording and compiled calls take. Usage: torch_costs.py FOLDER"""
import contextlib

import torch
from timing import in_turns
from torch.profiler import ProfilerActivity, profile


def profiler(**options):
    @contextlib.contextmanager
    def recording():
        with profile(activities=[ProfilerActivity.CPU], **options):
            yield

    return recording


def ops():
    a, x, w = torch.ones(16), torch.ones(16, 32), torch.ones(32, 32)
    layer = torch.nn.Linear(32, 32)
    kinds = {"a + b of 16 numbers": (lambda: a + a, 1), "tanh of 16 numbers": (lambda: torch.tanh(a), 1),
             "a product of 16 x 32 and 32 x 32": (lambda: x @ w, 2), "nn.Linear of 32 to 32": (lambda: layer(x), 10)}
    for name, (call, events) in kinds.items():
        def block():
            for _ in range(200):
                call()

        in_turns(f"an op of PyTorch from Python ({name})", block, 200, profiler(), events=events)
        in_turns(f"the same, shapes and memory recorded ({name})", block, 200,
                 profiler(record_shapes=True, profile_memory=True), events=events)


def compiled():
    x, w = torch.ones(16, 32), torch.ones(32, 32, requires_grad=True)

    def one(x):
        return (x * w[:16]).sum()

    def ten(x):
        for _ in range(10):
            x = torch.tanh(x @ w)
        return x.sum()

    for name, function in (("a product and a sum", one), ("ten products and tanh", ten)):
        for how, run in (("", function), (", compiled", torch.compile(function))):
            def block():
                for _ in range(20):
                    run(x).backward()

            in_turns(f"{name} in PyTorch with their gradients{how}", block, 20, profiler())


ops()
compiled()
