"""Customer churn from a table in memory: a TensorDataset of 40 columns, 2,048 rows a batch, under the default sampler.

Planted: the DataLoader fetches row by row and stacks 2,048 small tensors. Fix: a BatchSampler as `sampler` with
batch_size=None, so that one index fetches the whole batch.
"""
TRUTH = {
    "change": "cheaper-input",
    "framework": "pytorch", "first_finding": "input-python",
    "also_right": ["input-bound"], "same_fix": ["input-bound"], "must_name": ["DataLoader"], "healthy": False,
    "kind": "input",
    "fix": "DataLoader(rows, sampler=BatchSampler(RandomSampler(rows), 2048, False), batch_size=None)",
}
from _driver import Run

run = Run("torch", warm=5, steps=20)
run.marked = False
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

torch.manual_seed(2)
columns, churned = torch.randn(60_000, 40), torch.randint(0, 2, (60_000, 1)).float()
rows = TensorDataset(columns, churned)
if run.fixed:
    loader = DataLoader(rows, sampler=BatchSampler(RandomSampler(rows), 2048, False), batch_size=None)
else:
    loader = DataLoader(rows, batch_size=2048, shuffle=True)

model = nn.Sequential(nn.Linear(40, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
criterion = nn.BCEWithLogitsLoss()
for x, y in run.over(loader):
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
