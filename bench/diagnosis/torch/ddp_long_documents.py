"""DistributedDataParallel with gloo on two processes; the corpus is sorted by length and cut in two, so rank 1 has all
the long documents.

Planted: rank 0 waits for rank 1 in every step. Fix: deal the documents out in turn.
"""
TRUTH = {
    "change": "balance-shards",
    "framework": "pytorch", "first_finding": "straggler",
    "also_right": ["exposed-collective"], "same_fix": ["exposed-collective"], "must_name": ["rank 1"],
    "healthy": False, "kind": "collective", "fix": "documents[rank::2] instead of documents[rank * half:][:half]",
}
from _driver import Run

run = Run("torch", warm=4, steps=16)
rank = run.ranks(2)
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(32)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(2000, 128)
        self.layers = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128))
        self.head = nn.Linear(128, 8)

    def forward(self, document):
        return self.head(self.layers(self.words(document)).mean(1))


lengths = torch.randint(40, 800, (64,)).sort().values.tolist()
shard = lengths[rank::2] if run.fixed else lengths[rank * 32:][:32]
model = DistributedDataParallel(Reader())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in run.loop():
    document = torch.randint(0, 2000, (8, shard[step % 32]))
    loss = nn.functional.cross_entropy(model(document), torch.randint(0, 8, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
