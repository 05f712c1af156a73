"""Healthy: embeds a corpus in full batches under torch.inference_mode, results written to one array."""
TRUTH = {"framework": "pytorch", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
from _driver import Run

run = Run("torch", warm=3, steps=15, record_shapes=True, profile_memory=True)
import numpy as np
import torch
from torch import nn

torch.manual_seed(44)
model = nn.Sequential(nn.Conv1d(64, 256, 5, padding=2), nn.GELU(), nn.Conv1d(256, 256, 5, padding=2), nn.GELU(),
                      nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(256, 128)).eval()
recordings = torch.randn(512, 64, 128)
vectors = np.zeros((20 * 32, 128), np.float32)
with torch.inference_mode():
    for step in run.loop():
        first = step * 32 % 480
        vectors[step * 32:(step + 1) * 32] = model(recordings[first:first + 32]).numpy()
