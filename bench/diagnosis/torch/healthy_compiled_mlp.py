"""Healthy: a wide network under torch.compile, compiled during warm-up and never again."""
TRUTH = {"framework": "pytorch", "first_finding": None, "also_right": ["compute-bound"], "must_name": [],
         "healthy": True, "kind": "compute", "fix": None}
import os

from _driver import Run

run = Run("torch", warm=6, steps=15)
os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(run.scratch / "inductor")
import torch
from torch import nn

torch.manual_seed(43)
model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 1024), nn.GELU(),
                      nn.LayerNorm(1024), nn.Linear(1024, 16))
compiled = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
x, y = torch.randn(2048, 256), torch.randint(0, 16, (2048,))
for step in run.loop():
    rows = slice(step % 4 * 512, step % 4 * 512 + 512)
    loss = nn.functional.cross_entropy(compiled(x[rows]), y[rows])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
