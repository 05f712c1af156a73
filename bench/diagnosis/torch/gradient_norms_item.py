"""A deep residual regression that reads the norm of every parameter and of its gradient with .item() in every step and
prints them to a log.

Planted: 400 small norms and .item() per step. Fix: every 50th step. On a CPU .item() waits for nothing, so the cost is
that of the small calls, not of synchronising.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "python-overhead",
    "also_right": ["sync-stall", "eager-ops", "tiny-ops"], "same_fix": ["sync-stall"], "must_name": [],
    "healthy": False, "kind": "runtime",
    "fix": "if step % 50 == 0: print({name: p.grad.norm().item() ...})",
}
from _driver import Run

run = Run("torch", warm=5, steps=30)
import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(self.norm(x))))


torch.manual_seed(9)
model = nn.Sequential(nn.Linear(32, 48), *[Residual(48) for _ in range(33)], nn.Linear(48, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3, foreach=True)
x, y = torch.randn(128, 32), torch.randn(128, 1)
log = open(run.scratch / "norms.log", "w")
for step in run.loop():
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    if not run.fixed or step % 50 == 0:
        with run.part("norms"):
            weights = {name: p.norm().item() for name, p in model.named_parameters()}
            gradients = {name: p.grad.norm().item() for name, p in model.named_parameters()}
            print(step, loss.item(), weights, gradients, file=log, flush=True)
