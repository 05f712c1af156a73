"""Fraud scores from a deep, narrow network of normalised layers; AdamW with its default, which on a CPU is a loop over
parameters.

Planted: the optimizer handles 480 small parameters one after the other. Fix: fused=True.
"""
TRUTH = {
    "change": "fused-optimizer",
    "framework": "pytorch", "first_finding": "eager-ops",
    "also_right": ["tiny-ops", "python-overhead"], "same_fix": ["tiny-ops"], "must_name": [], "healthy": False,
    "kind": "runtime", "fix": "torch.optim.AdamW(model.parameters(), fused=True)",
}
from _driver import Run

run = Run("torch", warm=5, steps=20, record_shapes=True, profile_memory=True)
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return x + self.mix(x * self.scale + self.shift)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True if run.fixed else None)

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.binary_cross_entropy_with_logits(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


torch.manual_seed(13)
trainer = Trainer(nn.Sequential(nn.Linear(30, 24), *[Gate() for _ in range(120)], nn.Linear(24, 1)))
rows, fraud = torch.randn(256, 30), torch.randint(0, 2, (256, 1)).float()
for step in run.loop():
    trainer.step(rows, fraud)
