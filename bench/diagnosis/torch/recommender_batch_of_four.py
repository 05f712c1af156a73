"""A two-tower recommender trained on four pairs at a time.

Planted: the batch is too small; the cost of a call dwarfs its work. Fix: 32 at a time. Speed is judged per example.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "small-batch",
    "also_right": ["eager-ops", "tiny-ops", "python-overhead"], "same_fix": [], "must_name": [], "healthy": False,
    "kind": "runtime", "fix": "batch_size = 32",
}
from _driver import Run

run = Run("torch", warm=10, steps=60)
run.items = batch_size = 32 if run.fixed else 4
import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.table = nn.EmbeddingBag(rows, 64, sparse=True)
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64))

    def forward(self, ids):
        return nn.functional.normalize(self.layers(self.table(ids)), dim=1)


torch.manual_seed(19)
users, songs = Tower(5000), Tower(8000)
optimizer = torch.optim.SGD([*users.parameters(), *songs.parameters()], 0.05)
history, played = torch.randint(0, 5000, (4096, 20)), torch.randint(0, 8000, (4096, 5))
for step in run.loop():
    rows = torch.randint(0, 4096, (batch_size,))
    similar = users(history[rows]) @ songs(played[rows]).T
    loss = nn.functional.cross_entropy(similar / 0.1, torch.arange(batch_size))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
