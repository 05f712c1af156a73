"""A small transformer for ticket routing, trained with an Adam that someone wrote as a Python loop over parameters.

Planted: a dozen small ops per parameter, one parameter after the other. Fix: torch.optim.Adam(fused=True).
"""
TRUTH = {
    "change": "fused-optimizer",
    "framework": "pytorch", "first_finding": "eager-ops",
    "also_right": ["tiny-ops", "python-overhead"], "same_fix": ["tiny-ops", "python-overhead"], "must_name": [],
    "healthy": False, "kind": "runtime",
    "fix": "torch.optim.Adam(model.parameters(), fused=True) instead of a loop over parameters",
}
from _driver import Run

run = Run("torch", warm=5, steps=20, with_stack=True)
import torch
from torch import nn


class MyAdam:
    def __init__(self, parameters, rate=1e-3, betas=(0.9, 0.999), epsilon=1e-8):
        self.parameters = list(parameters)
        self.rate, self.betas, self.epsilon, self.steps = rate, betas, epsilon, 0
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]

    def zero_grad(self):
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad.zero_()

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for number, parameter in enumerate(self.parameters):
            gradient = parameter.grad
            self.first[number] = self.betas[0] * self.first[number] + (1 - self.betas[0]) * gradient
            self.second[number] = self.betas[1] * self.second[number] + (1 - self.betas[1]) * gradient * gradient
            first = self.first[number] / (1 - self.betas[0] ** self.steps)
            second = self.second[number] / (1 - self.betas[1] ** self.steps)
            parameter -= self.rate * first / (second.sqrt() + self.epsilon)


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(500, 32)
        layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 12)
        self.head = nn.Linear(32, 9)

    def forward(self, tickets):
        return self.head(self.encoder(self.words(tickets)).mean(1))


torch.manual_seed(11)
model = Router()
optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True) if run.fixed else MyAdam(model.parameters())
tickets, teams = torch.randint(0, 500, (4, 12)), torch.randint(0, 9, (4,))
for step in run.loop():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(tickets), teams)
    loss.backward()
    optimizer.step()
