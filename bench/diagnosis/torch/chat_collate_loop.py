"""Intent recognition in chat messages; collate_fn pads the token lists and builds the mask and the bag of bigrams with
Python loops.

Planted: a slow collate_fn. Fix: pad_sequence and tensor arithmetic on the whole batch.
"""
TRUTH = {
    "change": "cheaper-input",
    "framework": "pytorch", "first_finding": "input-python",
    "also_right": ["input-bound"], "same_fix": ["input-bound"], "must_name": ["DataLoader"], "healthy": False,
    "kind": "input",
    "fix": "torch.nn.utils.rnn.pad_sequence and one scatter_add_ in collate_fn instead of loops over tokens",
}
from _driver import Run

run = Run("torch", warm=5, steps=25, with_stack=True)
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

WORDS, BUCKETS = 3000, 1024
draw = random.Random(0)
messages = [([draw.randrange(1, WORDS) for _ in range(draw.randrange(8, 60))], draw.randrange(30)) for _ in range(4000)]


def pad_in_python(batch):
    longest = max(len(tokens) for tokens, _ in batch)
    ids, mask, bigrams = [], [], []
    for tokens, _ in batch:
        counts = [0.0] * BUCKETS
        for first, second in zip(tokens, tokens[1:]):
            counts[(first * 31 + second) % BUCKETS] += 1.0
        bigrams.append(counts)
        ids.append(tokens + [0] * (longest - len(tokens)))
        mask.append([1.0] * len(tokens) + [0.0] * (longest - len(tokens)))
    return torch.tensor(ids), torch.tensor(mask), torch.tensor(bigrams), torch.tensor([label for _, label in batch])


def pad_with_tensors(batch):
    ids = pad_sequence([torch.tensor(tokens) for tokens, _ in batch], batch_first=True)
    mask = (ids > 0).float()
    pairs = (ids[:, :-1] * 31 + ids[:, 1:]) % BUCKETS
    bigrams = torch.zeros(len(batch), BUCKETS).scatter_add_(1, pairs, mask[:, 1:])
    return ids, mask, bigrams, torch.tensor([label for _, label in batch])


class Intents(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 32, padding_idx=0)
        self.pairs = nn.Linear(BUCKETS, 32)
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(64, 30))

    def forward(self, ids, mask, bigrams):
        mean = (self.words(ids) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return self.head(torch.cat([mean, self.pairs(bigrams)], 1))


model = Intents()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = DataLoader(messages, batch_size=128, shuffle=True,
                    collate_fn=pad_with_tensors if run.fixed else pad_in_python)
for ids, mask, bigrams, labels in run.over(loader):
    loss = F.cross_entropy(model(ids, mask, bigrams), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
