"""Hand-drawn sketches are rasterised stroke by stroke in Python by two feeder threads, which fill a queue.

Planted: the threads and the training share one interpreter lock. Fix: rasterise all points of a batch with NumPy.
"""
TRUTH = {
    "change": "cheaper-input",
    "framework": "pytorch", "first_finding": "input-python",
    "also_right": ["input-bound", "python-overhead"], "same_fix": ["input-bound", "python-overhead"], "must_name": [],
    "healthy": False, "kind": "input",
    "fix": "np.add.at(images, (rows, ys, xs), 1) instead of a Python loop over points",
}
import queue
import threading

from _driver import Run

run = Run("torch", warm=6, steps=24)
import numpy as np
import torch
from torch import nn

SIZE, POINTS, BATCH = 48, 160, 64
rng = np.random.default_rng(3)
strokes = np.clip(24 + np.cumsum(rng.normal(0, 1.2, (2000, POINTS, 2)), 1), 0, SIZE - 1)
labels = rng.integers(0, 10, 2000)


def rasterise(chosen):
    images = np.zeros((len(chosen), SIZE, SIZE), np.float32)
    if run.fixed:
        points = strokes[chosen].astype(int)
        np.add.at(images, (np.arange(len(chosen))[:, None], points[..., 1], points[..., 0]), 1)
        return images
    for image, index in zip(images, chosen):
        for x, y in strokes[index].tolist():
            image[int(y)][int(x)] += 1
    return images


class Feeder(threading.Thread):
    def __init__(self, batches, seed):
        super().__init__(daemon=True)
        self.batches, self.rng = batches, np.random.default_rng(seed)

    def run(self):
        while True:
            chosen = self.rng.integers(0, 2000, BATCH)
            images = rasterise(chosen)
            self.batches.put((torch.from_numpy(images).unsqueeze(1), torch.from_numpy(labels[chosen])))


batches = queue.Queue(maxsize=4)
for seed in range(2):
    Feeder(batches, seed).start()

model = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU(), nn.Flatten(),
                      nn.Linear(16 * 11 * 11, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
criterion = nn.CrossEntropyLoss()
for step in run.loop():
    images, target = batches.get()
    loss = criterion(model(images), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
