"""A neural surrogate for a chemical reactor: the rate equations are a long chain of elementwise ops on a small state.

Planted: every op is dispatched from Python on its own. Fix: torch.compile on the residual.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "eager-ops",
    "also_right": ["tiny-ops", "python-overhead"], "same_fix": ["tiny-ops"], "must_name": [], "healthy": False,
    "kind": "runtime", "fix": "torch.compile(residual)",
}
import os

from _driver import Run

run = Run("torch", warm=6, steps=30, record_shapes=True)
os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(run.scratch / "inductor")
import torch
from torch import nn


class Reactor(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy = nn.Parameter(torch.rand(6) + 0.5)
        self.factor = nn.Parameter(torch.rand(6))

    def rate(self, state, temperature, number):
        arrhenius = torch.exp(-self.energy[number] / temperature) * self.factor[number]
        return arrhenius * state[:, number] * torch.sqrt(state[:, (number + 1) % 6].abs() + 1e-3)

    def forward(self, state, temperature):
        for _ in range(8):
            flows = []
            for number in range(6):
                gain = self.rate(state, temperature, (number - 1) % 6)
                flows.append(gain - self.rate(state, temperature, number))
            change = torch.stack(flows, 1)
            state = state + 0.05 * change / (1 + change.abs())
            temperature = temperature + 0.01 * torch.tanh(change.sum(1))
        return state


torch.manual_seed(15)
model = Reactor()
residual = torch.compile(model) if run.fixed else model
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
state, temperature, goal = torch.rand(64, 6), torch.rand(64) + 1, torch.rand(64, 6)
for step in run.loop():
    loss = (residual(state, temperature) - goal).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
