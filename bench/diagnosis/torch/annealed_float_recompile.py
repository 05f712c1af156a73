"""A Gumbel-softmax network whose temperature is a Python number on the module, lowered after every tenth step.

Planted: torch.compile guards on the number and compiles again when it changes. Fix: keep the temperature in a buffer.
"""
TRUTH = {
    "change": "tensor-argument",
    "framework": "pytorch", "first_finding": "recompilation",
    "also_right": ["retracing"], "same_fix": ["retracing"], "must_name": [], "healthy": False, "kind": "compile",
    "fix": "self.register_buffer(\"epoch\", torch.tensor(...)) and fill_ instead of a Python attribute",
}
import os

from _driver import Run

run = Run("torch", warm=4, steps=20, record_shapes=True)
os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(run.scratch / "inductor")
import torch
from torch import nn


class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256))
        self.decode = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 784))
        if run.fixed:
            self.register_buffer("epoch", torch.tensor(0.0))
        else:
            self.epoch = 0

    def forward(self, x):
        logits = self.encode(x).view(-1, 16, 16)
        temperature = 1.0 / (1.0 + 0.1 * self.epoch)
        codes = torch.softmax(logits / temperature, -1)
        return self.decode(codes.flatten(1))


torch.manual_seed(17)
model = Codes()
reconstruct = torch.compile(model, dynamic=False)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
digits = torch.rand(2048, 784)
for step in run.loop():
    if step % 10 == 0:
        if run.fixed:
            model.epoch.fill_(step // 10)
        else:
            model.epoch = step // 10
    loss = nn.functional.mse_loss(reconstruct(digits), digits)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
