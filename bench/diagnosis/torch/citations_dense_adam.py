"""Node embeddings of a citation graph; a batch touches about 3,000 of 150,000 papers, but the gradient of the table is
dense and Adam updates all of it.

Planted: nn.Embedding(sparse=False) under Adam. Fix: sparse=True and SparseAdam.
"""
TRUTH = {
    "change": "sparse-update",
    "framework": "pytorch", "first_finding": "dominant-op",
    "also_right": ["compute-bound"], "same_fix": [], "must_name": [], "healthy": False, "kind": "compute",
    "fix": "nn.Embedding(PAPERS, 48, sparse=True) and torch.optim.SparseAdam",
}
from _driver import Run

run = Run("torch", warm=3, steps=15)
import torch
from torch import nn

PAPERS = 150_000


class PaperVectors(nn.Module):
    def __init__(self):
        super().__init__()
        self.papers = nn.Embedding(PAPERS, 48, sparse=run.fixed)
        self.relation = nn.Linear(48, 48)

    def forward(self, citing, cited, others):
        source = self.relation(self.papers(citing))
        near = (source * self.papers(cited)).sum(1, keepdim=True)
        far = torch.einsum("bd,bkd->bk", source, self.papers(others))
        return torch.cat([near, far], 1)


torch.manual_seed(26)
model = PaperVectors()
if run.fixed:
    optimizers = [torch.optim.SparseAdam(model.papers.parameters(), 1e-3),
                  torch.optim.Adam(model.relation.parameters(), 1e-3)]
else:
    optimizers = [torch.optim.Adam(model.parameters(), 1e-3)]
for step in run.loop():
    citing, cited = torch.randint(0, PAPERS, (2, 512))
    others = torch.randint(0, PAPERS, (512, 4))
    loss = nn.functional.cross_entropy(model(citing, cited, others), torch.zeros(512, dtype=torch.long))
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
