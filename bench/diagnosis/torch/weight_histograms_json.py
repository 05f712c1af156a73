"""A regression whose logger writes a histogram and percentiles of every weight and every gradient after each step.

Planted: NumPy and JSON between the steps. Fix: log every 50th step.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "python-overhead",
    "also_right": ["checkpoint-stall"], "same_fix": ["checkpoint-stall"], "must_name": [], "healthy": False,
    "kind": "python", "fix": "if step % 50 == 0: logger.log_model(step, model)",
}
import json

from _driver import Run

run = Run("torch", warm=5, steps=25, record_shapes=True, with_stack=True)
import numpy as np
import torch
from torch import nn


class HistogramLogger:
    def __init__(self, path):
        self.file = open(path, "w")

    def log_model(self, step, model):
        record = {"step": step}
        for name, parameter in model.named_parameters():
            for kind, tensor in (("weight", parameter), ("gradient", parameter.grad)):
                values = tensor.detach().numpy().ravel()
                counts, edges = np.histogram(values, bins=64)
                record[f"{kind}/{name}"] = {"counts": counts.tolist(), "edges": edges.tolist(),
                                            "percentiles": np.percentile(values, [1, 5, 50, 95, 99]).tolist()}
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()


torch.manual_seed(8)
model = nn.Sequential(nn.Linear(64, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(),
                      nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
x, y = torch.randn(1024, 64), torch.randn(1024, 1)
logger = HistogramLogger(run.scratch / "histograms.jsonl")
for step in run.loop():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    if not run.fixed or step % 50 == 0:
        with run.part("log"):
            logger.log_model(step, model)
