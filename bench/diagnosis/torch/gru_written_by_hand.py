"""Glucose forecasting with a gated recurrent cell written by hand: Python goes through the time steps.

Planted: a dozen small ops for each of 120 time steps. Fix: nn.GRU.
"""
TRUTH = {
    "change": "vectorize",
    "framework": "pytorch", "first_finding": "eager-ops",
    "also_right": ["tiny-ops", "python-overhead"], "same_fix": ["tiny-ops"], "must_name": [], "healthy": False,
    "kind": "runtime", "fix": "nn.GRU instead of a Python loop over time steps",
}
from _driver import Run

run = Run("torch", warm=4, steps=15)
import torch
from torch import nn


class GatedCell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.reset = nn.Linear(inputs + hidden, hidden)
        self.update = nn.Linear(inputs + hidden, hidden)
        self.new = nn.Linear(inputs + hidden, hidden)

    def forward(self, x, state):
        both = torch.cat([x, state], 1)
        reset = torch.sigmoid(self.reset(both))
        update = torch.sigmoid(self.update(both))
        new = torch.tanh(self.new(torch.cat([x, reset * state], 1)))
        return (1 - update) * new + update * state


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        if run.fixed:
            self.gru = nn.GRU(4, 48, batch_first=True)
        else:
            self.cell = GatedCell(4, 48)
        self.head = nn.Linear(48, 6)

    def forward(self, series):
        if run.fixed:
            return self.head(self.gru(series)[0][:, -1])
        state = series.new_zeros(len(series), self.cell.hidden)
        for time in range(series.shape[1]):
            state = self.cell(series[:, time], state)
        return self.head(state)


torch.manual_seed(10)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
series, future = torch.randn(32, 120, 4), torch.randn(32, 6)
for step in run.loop():
    loss = nn.functional.l1_loss(model(series), future)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
