"""Scores comments with a trained transformer, one comment per call, gradients left on.

Planted: a call for a single example. Fix: 16 comments at a time. Speed is judged per comment.
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "small-batch",
    "also_right": ["eager-ops", "tiny-ops", "python-overhead"], "same_fix": [], "must_name": [], "healthy": False,
    "kind": "runtime", "fix": "model(comments[start:start + 16]) instead of one comment per call",
}
from _driver import Run

run = Run("torch", warm=8, steps=40, record_shapes=True)
size = run.items = 16 if run.fixed else 1
import torch
from torch import nn


class Toxicity(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(4000, 64), nn.Parameter(torch.zeros(24, 64))
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(64, 6)

    def forward(self, comments):
        return torch.sigmoid(self.head(self.encoder(self.words(comments) + self.places).mean(1)))


torch.manual_seed(20)
model = Toxicity().eval()
comments = torch.randint(0, 4000, (1024, 24))
scores = []
for step in run.loop():
    scores += model(comments[step * size:(step + 1) * size]).tolist()
