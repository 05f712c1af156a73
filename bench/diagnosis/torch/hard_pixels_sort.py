"""Crack segmentation with hard-example mining: the per-pixel losses are sorted in full to average the hardest 2 %.

Planted: a full sort of a million losses. Fix: torch.topk.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "dominant-op",
    "also_right": [], "must_name": ["sort"], "healthy": False, "kind": "compute",
    "fix": "losses.topk(count).values.mean() instead of losses.sort(descending=True)",
}
from _driver import Run

run = Run("torch", warm=3, steps=12)
import torch
from torch import nn


class HardPixels(nn.Module):
    def forward(self, logits, mask):
        losses = nn.functional.binary_cross_entropy_with_logits(logits, mask, reduction="none").flatten()
        count = losses.numel() // 50
        if run.fixed:
            return losses.topk(count, sorted=False).values.mean()
        return losses.sort(descending=True).values[:count].mean()


torch.manual_seed(22)
model = nn.Sequential(nn.Conv2d(1, 32, 4, 4), nn.ReLU(), nn.Conv2d(32, 16, 1), nn.PixelShuffle(4))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
criterion = HardPixels()
images = torch.rand(8, 1, 384, 384)
cracks = (torch.rand(8, 1, 384, 384) < 0.03).float()
for step in run.loop():
    optimizer.zero_grad()
    loss = criterion(model(images), cracks)
    loss.backward()
    optimizer.step()
