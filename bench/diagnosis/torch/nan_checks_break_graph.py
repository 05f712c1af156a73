"""A compiled residual network with a check for NaN after every block, left from debugging.

Planted: each check breaks the compiled graph, so Python goes from one small graph to the next. Fix: no checks.
"""
TRUTH = {
    "change": "remove-graph-breaks",
    "framework": "pytorch", "first_finding": "python-overhead",
    "also_right": ["eager-ops", "tiny-ops", "sync-stall"], "same_fix": ["eager-ops", "sync-stall"], "must_name": [],
    "healthy": False, "kind": "runtime", "fix": "remove `if torch.isnan(x).any()` from Block.forward",
}
import os

from _driver import Run

run = Run("torch", warm=4, steps=20)
os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(run.scratch / "inductor")
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        x = x + torch.tanh(x * self.gain + self.bias) * torch.sigmoid(x)
        if not run.fixed and torch.isnan(x).any():
            raise ValueError("NaN in Block")
        return x


torch.manual_seed(18)
model = nn.Sequential(*[Block(128) for _ in range(24)])
compiled = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), 1e-3, foreach=True)
x, y = torch.randn(64, 128), torch.randn(64, 128)
for step in run.loop():
    loss = (compiled(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
