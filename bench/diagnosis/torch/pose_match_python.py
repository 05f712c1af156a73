"""Pedestrian boxes from camera images; after each step, predictions are matched with the truth in plain Python for a
running average precision.

Planted: a metric in pure Python in every step. Fix: every 20th step.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "python-overhead",
    "also_right": [], "must_name": [], "healthy": False, "kind": "python",
    "fix": "if step % 20 == 0: matches.update(...)",
}
from _driver import Run

run = Run("torch", warm=5, steps=25)
import torch
from torch import nn


def overlap(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


class Matches:
    def __init__(self):
        self.hits = self.total = 0

    def update(self, predicted, truth):
        for boxes, goals in zip(predicted.tolist(), truth.tolist()):
            taken = set()
            for box in boxes:
                best, where = 0.0, None
                for number, goal in enumerate(goals):
                    if number not in taken and (value := overlap(box, goal)) > best:
                        best, where = value, number
                if best > 0.5:
                    taken.add(where)
                    self.hits += 1
                self.total += 1


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                                  nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 24 * 4))

    def forward(self, images):
        corners = self.body(images).view(-1, 24, 2, 2)
        return torch.cat([corners[:, :, 0], corners[:, :, 0] + corners[:, :, 1].abs()], 2)


torch.manual_seed(7)
images = torch.rand(32, 3, 96, 96)
first = torch.rand(32, 24, 2)
truth = torch.cat([first, first + torch.rand(32, 24, 2)], 2)
model, matches = Detector(), Matches()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for step in run.loop():
    boxes = model(images)
    loss = nn.functional.smooth_l1_loss(boxes, truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not run.fixed or step % 20 == 0:
        with run.part("metric"):
            matches.update(boxes.detach(), truth)
