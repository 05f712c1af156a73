"""A topic model that turns tokens into one-hot vectors and multiplies them with the embedding matrix.

Planted: the product with a one-hot matrix of 3,000 words. Fix: nn.functional.embedding.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "dominant-op",
    "also_right": ["compute-bound"], "same_fix": [], "must_name": ["mm"], "healthy": False, "kind": "compute",
    "fix": "nn.functional.embedding(tokens, self.table) instead of one_hot(tokens).float() @ self.table",
}
from _driver import Run

run = Run("torch", warm=3, steps=12, record_shapes=True, profile_memory=True)
import torch
import torch.nn.functional as F
from torch import nn

WORDS = 3000


class Topics(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(WORDS, 96) * 0.05)
        self.layers = nn.Sequential(nn.Linear(96, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU())
        self.head = nn.Linear(384, 40)

    def forward(self, tokens):
        if run.fixed:
            words = F.embedding(tokens, self.table)
        else:
            words = F.one_hot(tokens, WORDS).float() @ self.table
        return self.head(self.layers(words).mean(1))


torch.manual_seed(21)
model = Topics()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
tokens, topics = torch.randint(0, WORDS, (64, 40)), torch.randint(0, 40, (64,))
for step in run.loop():
    loss = F.cross_entropy(model(tokens), topics)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
