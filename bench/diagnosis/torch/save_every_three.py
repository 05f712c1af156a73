"""An autoencoder for vibration data whose state is written with torch.save in every third step.

Planted: the loop waits for the file. Fix: every 500th step.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "checkpoint-stall",
    "also_right": ["step-outliers", "python-overhead"], "same_fix": ["step-outliers", "python-overhead"],
    "must_name": [], "healthy": False, "kind": "output", "fix": "if step % 500 == 2: torch.save(...)",
}
from _driver import Run

run = Run("torch", warm=5, steps=30)
import torch
from torch import nn

torch.manual_seed(12)
model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 128), nn.GELU(), nn.Linear(128, 1024),
                      nn.GELU(), nn.Linear(1024, 1024))
optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
signals = torch.randn(4096, 1024)
for step in run.loop():
    x = signals[torch.randint(0, 4096, (16,))]
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % (500 if run.fixed else 3) == 2:
        with run.part("save"):
            torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()},
                       run.scratch / "last.pt")
