"""Healthy: a convolutional network with batch normalisation on batches in memory, the loss read every 10th step."""
TRUTH = {"framework": "pytorch", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("torch", warm=3, steps=12, record_shapes=True)
import torch
from torch import nn


def block(inputs, outputs, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


torch.manual_seed(40)
model = nn.Sequential(block(3, 32), block(32, 48, 2), block(48, 64), block(64, 96, 2), block(96, 96),
                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
images, labels = torch.rand(512, 3, 32, 32), torch.randint(0, 10, (512,))
for step in run.loop():
    rows = torch.arange(step * 64, step * 64 + 64) % 512
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
