"""Data parallel on two processes, written by hand: after backward, dist.all_reduce for one gradient after the other.

Planted: 132 small collectives per step with nothing under them. Fix: one all_reduce of all gradients in one buffer.
"""
TRUTH = {
    "change": "bucket-gradients",
    "framework": "pytorch", "first_finding": "exposed-collective",
    "also_right": [], "must_name": [], "healthy": False, "kind": "collective",
    "fix": "one dist.all_reduce(torch.cat([p.grad.flatten() ...])) instead of one per parameter",
}
from _driver import Run

run = Run("torch", warm=5, steps=20, record_shapes=True)
rank = run.ranks(2)
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(33)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.dense = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.dense(self.norm(x)))


def average_gradients(parameters):
    gradients = [parameter.grad for parameter in parameters]
    if run.fixed:
        buffer = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(buffer)
        parts = buffer.div_(2).split([gradient.numel() for gradient in gradients])
        torch._foreach_copy_(gradients, [part.view_as(gradient) for part, gradient in zip(parts, gradients)])
    else:
        for gradient in gradients:
            dist.all_reduce(gradient)
            gradient /= 2


model = nn.Sequential(nn.Linear(40, 64), *[Residual(64) for _ in range(32)], nn.Linear(64, 1))
parameters = list(model.parameters())
optimizer = torch.optim.SGD(parameters, 1e-3, foreach=True)
generator = torch.Generator().manual_seed(rank)
x, y = torch.randn(256, 40, generator=generator), torch.randn(256, 1, generator=generator)
for step in run.loop():
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    average_gradients(parameters)
    optimizer.step()
