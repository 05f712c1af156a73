"""Distillation of a large network into a small one; the teacher runs without no_grad and with trainable parameters.

Planted: the backward pass goes through the teacher, whose gradients nobody uses. Fix: torch.no_grad() around it.
"""
TRUTH = {
    "change": "no-grad",
    "framework": "pytorch", "first_finding": "dominant-op",
    "also_right": ["compute-bound"], "same_fix": [], "must_name": [], "healthy": False, "kind": "compute",
    "fix": "with torch.no_grad(): goal = teacher(x)",
}
from _driver import Run

run = Run("torch", warm=3, steps=12, record_shapes=True, with_stack=True)
import torch
from torch import nn

torch.manual_seed(29)
teacher = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 100))
student = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 100))
optimizer = torch.optim.Adam(student.parameters(), 1e-3)
x = torch.randn(512, 256)
for step in run.loop():
    with torch.set_grad_enabled(not run.fixed):
        goal = torch.softmax(teacher(x) / 2.0, 1)
    loss = nn.functional.kl_div(torch.log_softmax(student(x) / 2.0, 1), goal, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
