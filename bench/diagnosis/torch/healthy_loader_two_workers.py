"""Healthy: images through a DataLoader with two workers, which are far ahead of a sizeable network."""
TRUTH = {"framework": "pytorch", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("torch", warm=4, steps=14)
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self):
        self.pixels = np.random.default_rng(42).integers(0, 256, (2000, 1, 32, 32), np.uint8)

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        image = torch.from_numpy(self.pixels[index]).float().div_(255)
        return (image.flip(2) if index % 2 else image), index % 10


torch.manual_seed(42)
model = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(),
                      nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8192, 10))
optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)
loader = DataLoader(Digits(), batch_size=64, shuffle=True, num_workers=2, persistent_workers=True)
for images, labels in run.over(loader):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
