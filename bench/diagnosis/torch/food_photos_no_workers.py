"""Food photographs, classified by a small convolutional network; the Dataset unpacks, crops, flips, jitters and
normalises each photograph itself.

Planted: a slow __getitem__ in a DataLoader with num_workers=0. Fix: two workers.
"""
TRUTH = {
    "change": "input-workers",
    "framework": "pytorch", "first_finding": "input-python",
    "also_right": ["input-bound"], "must_name": ["DataLoader"], "healthy": False, "kind": "input",
    "fix": "DataLoader(photos, batch_size=32, shuffle=True, num_workers=2)",
}
import zlib

from _driver import Run

run = Run("torch", warm=6, steps=20, record_shapes=True)
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)  # leaves a core to the loader


class FoodPhotos(Dataset):
    def __init__(self, size=1600):
        rng = np.random.default_rng(0)
        coarse = rng.integers(0, 256, (64, 80, 80, 3), np.uint8).repeat(3, 1).repeat(3, 2)
        self.packed = [zlib.compress(photo.tobytes()) for photo in coarse]
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        photo = np.frombuffer(zlib.decompress(self.packed[index % 64]), np.uint8).reshape(240, 240, 3)
        top, left = rng.integers(0, 32, 2)
        photo = photo[top:top + 192:2, left:left + 192:2].astype(np.float32) / 255
        if rng.random() < 0.5:
            photo = photo[:, ::-1]
        photo = np.clip((photo - photo.mean()) * rng.uniform(0.7, 1.3) + rng.uniform(0.3, 0.7), 0, 1)
        photo = photo ** rng.uniform(0.8, 1.2)
        photo = (photo - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
        return torch.from_numpy(np.ascontiguousarray(photo.transpose(2, 0, 1), np.float32)), index % 20


model = nn.Sequential(
    nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 20))
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(FoodPhotos(), batch_size=32, shuffle=True, num_workers=2 if run.fixed else 0)

for photos, labels in run.over(loader):
    optimizer.zero_grad()
    loss = criterion(model(photos), labels)
    loss.backward()
    optimizer.step()
