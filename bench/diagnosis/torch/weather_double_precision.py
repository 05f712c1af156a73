"""Downscaling of weather maps; the data came from NumPy as float64, and the model was made double to match.

Planted: every convolution in double precision. Fix: float32.
"""
TRUTH = {
    "change": "float32",
    "framework": "pytorch", "first_finding": "compute-bound",
    "also_right": ["dominant-op"], "same_fix": ["dominant-op"], "must_name": [], "healthy": False, "kind": "compute",
    "fix": "model.float() and torch.from_numpy(maps).float() instead of model.double()",
}
from _driver import Run

run = Run("torch", warm=3, steps=12, record_shapes=True)
import numpy as np
import torch
from torch import nn

torch.manual_seed(25)
maps = torch.from_numpy(np.random.default_rng(25).standard_normal((16, 4, 64, 64)))
model = nn.Sequential(nn.Conv2d(4, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
                      nn.Conv2d(32, 16, 3, padding=1), nn.PixelShuffle(2))
if run.fixed:
    maps = maps.float()
else:
    model = model.double()
fine = nn.functional.interpolate(maps, scale_factor=2, mode="bilinear")
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for step in run.loop():
    loss = nn.functional.l1_loss(model(maps), fine)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
