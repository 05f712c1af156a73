"""Sentence pairs under torch.compile(dynamic=False); each batch is as long as its longest sentence.

Planted: every new length compiles the model again. Fix: pad all batches to 48 words.
"""
TRUTH = {
    "change": "pad-shapes",
    "framework": "pytorch", "first_finding": "recompilation",
    "also_right": ["retracing"], "same_fix": ["retracing"], "must_name": [], "healthy": False, "kind": "compile",
    "fix": "pad all sentences to 48 words",
}
import os

from _driver import Run

run = Run("torch", warm=4, steps=20)
os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(run.scratch / "inductor")
import torch
from torch import nn

torch.manual_seed(16)


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(4000, 128)
        self.mix = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128), nn.LayerNorm(128))

    def forward(self, first, second):
        return (self.mix(self.words(first)).mean(1) * self.mix(self.words(second)).mean(1)).sum(1)


model = Matcher()
score = torch.compile(model, dynamic=False)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
# A bucketing sampler gives a few lengths, which come again.
lengths = [40, 40, 40, 40, 40, 40, 40, 44, 40, 44, 40, 40, 44, 40, 40, 36, 40, 44, 40, 36, 40, 40, 44, 40]
for step in run.loop():
    length = 48 if run.fixed else lengths[step % len(lengths)]
    first, second = torch.randint(0, 4000, (2, 128, length))
    loss = nn.functional.binary_cross_entropy_with_logits(score(first, second), torch.ones(128))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
