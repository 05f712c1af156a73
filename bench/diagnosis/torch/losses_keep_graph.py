"""Gait recognition; the epoch's mean loss is summed up with `total = total + loss`, which keeps the graph, and with it
the activations, of every step.

Planted: memory grows by some 16 MB per step. Fix: total += loss.item(). It saves memory, so the speed-up is not judged.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "memory-leak",
    "also_right": ["memory-pressure"], "must_name": [], "healthy": False, "kind": "compute", "speedup": False,
    "fix": "total += loss.item()",
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
total = 0.0
for step in run.loop():
    prediction = model(x)
    # The penalty's graph is not freed by backward, as only the loss without it is differentiated.
    loss = (prediction - y).square().mean()
    penalty = loss + 1e-4 * prediction.abs().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=not run.fixed)
    optimizer.step()
    total += penalty.item() if run.fixed else penalty
