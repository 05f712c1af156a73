"""Gait recognition; every step also looks at the loss of a held-out batch and sums it up with `total = total + loss`,
which keeps the graph, and with it the activations, of every step.

Planted: memory grows in each step. Fix: total + loss.item(). It saves memory, so the speed-up is not judged.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "memory-leak",
    "also_right": ["memory-pressure"], "must_name": [], "healthy": False, "kind": "compute", "speedup": False,
    "fix": "total = total + held_out_loss.item()",
}
from _driver import Run

run = Run("torch", warm=3, steps=20, profile_memory=True, record_shapes=True)
import torch
from torch import nn


class Gait(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(6, 32, 5, padding=2), nn.ReLU(), nn.Conv1d(32, 32, 5, padding=2), nn.ReLU())
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.body(x).mean(2))


torch.manual_seed(28)
model = Gait()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
x, y = torch.randn(128, 6, 256), torch.randn(128, 1)
held_x, held_y = torch.randn(128, 6, 256), torch.randn(128, 1)
total = 0.0
for step in run.loop():
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    held_out_loss = (model(held_x) - held_y).square().mean()
    total = total + (held_out_loss.item() if run.fixed else held_out_loss)
