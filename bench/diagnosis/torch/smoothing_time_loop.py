"""Sales forecasting: exponential smoothing with learned rates, computed week by week in Python.

Planted: three tiny ops for each of 260 weeks, forward and backward. Fix: one product with the smoothing matrix.
"""
TRUTH = {
    "change": "vectorize",
    "framework": "pytorch", "first_finding": "tiny-ops",
    "also_right": ["eager-ops", "python-overhead"], "same_fix": ["eager-ops"], "must_name": [], "healthy": False,
    "kind": "runtime", "fix": "sales @ weights.T with weights[t, s] = rate * (1 - rate) ** (t - s) instead of the loop",
}
from _driver import Run

run = Run("torch", warm=4, steps=15)
run.marked = False
import torch

torch.manual_seed(14)
SHOPS, WEEKS = 400, 260
sales = torch.rand(SHOPS, WEEKS) * 100
logit = torch.zeros((), requires_grad=True)
scale = torch.ones(SHOPS, 1, requires_grad=True)
optimizer = torch.optim.Adam([logit, scale], 0.01)
lag = torch.arange(WEEKS)[:, None] - torch.arange(WEEKS)


def smooth_by_week(rate):
    level, levels = rate * sales[:, 0], []
    levels.append(level)
    for week in range(1, WEEKS):
        level = rate * sales[:, week] + (1 - rate) * level
        levels.append(level)
    return torch.stack(levels, 1)


def smooth_at_once(rate):
    weights = torch.where(lag >= 0, rate * (1 - rate) ** lag.clamp(min=0), 0.0)
    return sales @ weights.T


for step in run.loop():
    rate = torch.sigmoid(logit)
    levels = smooth_at_once(rate) if run.fixed else smooth_by_week(rate)
    loss = (levels[:, :-1] * scale - sales[:, 1:]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
