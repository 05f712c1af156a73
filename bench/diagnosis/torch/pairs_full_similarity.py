"""A siamese network for product photographs: the similarity of all pairs is computed, and only the diagonal is used.

Planted: an unneeded product of two large matrices. Fix: multiply and sum row by row.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "dominant-op",
    "also_right": ["compute-bound"], "same_fix": [], "must_name": ["mm"], "healthy": False, "kind": "compute",
    "fix": "(left * right).sum(1) instead of (left @ right.T).diagonal()",
}
from _driver import Run

run = Run("torch", warm=3, steps=15, with_stack=True)
import torch
from torch import nn


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 384))

    def forward(self, left, right):
        left, right = self.body(left), self.body(right)
        return (left * right).sum(1) if run.fixed else (left @ right.T).diagonal()


torch.manual_seed(24)
model = Siamese()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
left, right, same = torch.randn(2048, 128), torch.randn(2048, 128), torch.randint(0, 2, (2048,)).float()
for step in run.loop():
    loss = nn.functional.binary_cross_entropy_with_logits(model(left, right), same)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
