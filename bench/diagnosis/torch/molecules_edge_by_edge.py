"""Solubility of molecules: a message-passing network that adds up the messages edge by edge in Python.

Planted: a tiny op for every bond. Fix: index_add over all edges at once.
"""
TRUTH = {
    "change": "vectorize",
    "framework": "pytorch", "first_finding": "eager-ops",
    "also_right": ["tiny-ops", "python-overhead"], "same_fix": ["tiny-ops", "python-overhead"], "must_name": [],
    "healthy": False, "kind": "runtime",
    "fix": "torch.zeros_like(atoms).index_add(0, target, messages) instead of the loop over edges",
}
from _driver import Run

run = Run("torch", warm=3, steps=12, record_shapes=True)
import torch
from torch import nn


class MessagePassing(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message, self.update = nn.Linear(width, width), nn.GRUCell(width, width)

    def forward(self, atoms, source, target):
        messages = torch.relu(self.message(atoms))
        if run.fixed:
            return self.update(torch.zeros_like(atoms).index_add(0, target, messages[source]), atoms)
        received = [[] for _ in range(len(atoms))]
        for edge in range(len(source)):
            received[target[edge]].append(messages[source[edge]])
        nothing = torch.zeros(atoms.shape[1])
        return self.update(torch.stack([sum(them, nothing) for them in received]), atoms)


class Solubility(nn.Module):
    def __init__(self):
        super().__init__()
        self.elements = nn.Embedding(20, 32)
        self.rounds = nn.ModuleList([MessagePassing(32) for _ in range(2)])
        self.head = nn.Linear(32, 1)

    def forward(self, elements, source, target, molecule):
        atoms = self.elements(elements)
        for messages in self.rounds:
            atoms = messages(atoms, source, target)
        return torch.zeros(16, 1).index_add(0, molecule, self.head(atoms))


torch.manual_seed(31)
elements, molecule = torch.randint(0, 20, (96,)), torch.arange(96) // 6
source, target = torch.randint(0, 96, (2, 200))
model, solubility = Solubility(), torch.randn(16, 1)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for step in run.loop():
    loss = (model(elements, source, target, molecule) - solubility).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
