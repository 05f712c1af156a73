"""A denoiser that is validated after every sixth step, without no_grad and with the sum of losses keeping each graph.

Planted: the validation makes every sixth step many times longer. Fix: validate every 600 steps.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "step-outliers",
    "also_right": ["latency-tail"], "same_fix": ["latency-tail"], "must_name": [], "healthy": False, "kind": "compute",
    "fix": "if step % 600 == 5: validate()",
}
from _driver import Run

run = Run("torch", warm=6, steps=36)
import torch
from torch import nn

torch.manual_seed(30)
model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                      nn.Conv2d(16, 1, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
clean = torch.rand(16, 1, 48, 48)
held_out = [torch.rand(32, 1, 48, 48) for _ in range(8)]


def validate():
    model.eval()
    total = 0.0
    for images in held_out:
        total = total + nn.functional.mse_loss(model(images + 0.1 * torch.randn_like(images)), images)
    model.train()
    return float(total) / len(held_out)


for step in run.loop():
    loss = nn.functional.mse_loss(model(clean + 0.1 * torch.randn_like(clean)), clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % (600 if run.fixed else 6) == 5:
        with run.part("validation"):
            score = validate()
