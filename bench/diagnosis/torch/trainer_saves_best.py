"""A Trainer with callbacks, trained on sensor windows. ModelCheckpoint writes the model whenever the moving loss is the
lowest so far, which early in training is nearly always.

Planted: torch.save, and a copy of the file, in nearly every step. Fix: check every 200th step.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "checkpoint-stall",
    "also_right": ["step-outliers", "python-overhead"], "same_fix": ["step-outliers", "python-overhead"],
    "must_name": [], "healthy": False, "kind": "output",
    "fix": "if trainer.steps % 200 == 0 in ModelCheckpoint.on_step_end",
}
import shutil

from _driver import Run

run = Run("torch", warm=6, steps=24, with_stack=True, profile_memory=True)
import torch
from torch import nn


class ModelCheckpoint:
    def __init__(self, folder):
        self.folder, self.best, self.moving = folder, float("inf"), None

    def on_step_end(self, trainer, loss):
        self.moving = loss if self.moving is None else 0.9 * self.moving + 0.1 * loss
        if run.fixed and trainer.steps % 200 != 0:
            return
        if self.moving < self.best:
            self.best = self.moving
            torch.save(trainer.model.state_dict(), self.folder / "best.pt")
            shutil.copy(self.folder / "best.pt", self.folder / f"best-{trainer.steps % 3}.pt")


class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks, self.steps = model, callbacks, 0
        self.optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)

    def train_step(self, x, y):
        self.steps += 1
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        with run.part("callbacks"):
            for callback in self.callbacks:
                callback.on_step_end(self, loss.item())


torch.manual_seed(27)
model = nn.Sequential(nn.Flatten(), nn.Linear(1200, 1500), nn.ReLU(), nn.Linear(1500, 1000), nn.ReLU(),
                      nn.Linear(1000, 8))
trainer = Trainer(model, [ModelCheckpoint(run.scratch)])
windows = torch.randn(64, 100, 12)
targets = windows.mean(1)[:, :8] * 10
for step in run.loop():
    trainer.train_step(windows, targets)
