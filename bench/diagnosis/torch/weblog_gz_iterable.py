"""Click prediction from gzipped JSON logs: an IterableDataset reads and parses them line by line.

Planted: reading and parsing in the training process. Fix: two workers, each with every second file.
"""
TRUTH = {
    "change": "input-workers",
    "framework": "pytorch", "first_finding": "input-python",
    "also_right": ["input-bound", "input-file-read"], "must_name": ["DataLoader"], "healthy": False, "kind": "input",
    "fix": "DataLoader(logs, batch_size=256, num_workers=2), each worker with files[worker.id::worker.num_workers]",
}
import gzip
import itertools
import json
import random
import re
import zlib

from _driver import Run

run = Run("torch", warm=5, steps=25, profile_memory=True)
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

torch.set_num_threads(1)  # leaves a core to the loader
BUCKETS, WORD = 20_000, re.compile(r"\w+")
draw = random.Random(6)
files = [run.scratch / f"log{number}.json.gz" for number in range(4)]
for file in files:
    with gzip.open(file, "wt", compresslevel=3) as out:
        for _ in range(4000):
            event = {"user": draw.randrange(5000), "clicked": draw.random() < 0.2, "age": draw.randrange(18, 80),
                     "pages": [f"/shop/{draw.randrange(90)}/{draw.randrange(2000)}?from=search" for _ in range(40)],
                     "agent": "Mozilla/5.0 (X11; Linux x86_64)" + "x" * draw.randrange(30)}
            out.write(json.dumps(event) + "\n")


class Clicks(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        mine = files[worker.id::worker.num_workers] if worker else files
        for file in itertools.cycle(mine):
            with gzip.open(file, "rt") as lines:
                for line in lines:
                    event = json.loads(line)
                    words = [word for page in event["pages"] for word in WORD.findall(page.lower())]
                    pages = [zlib.crc32(word.encode()) % BUCKETS for word in words]
                    yield torch.tensor(pages), event["age"] / 80, float(event["clicked"])


class ClickModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.pages = nn.EmbeddingBag(BUCKETS, 32, sparse=True)
        self.layers = nn.Sequential(nn.Linear(33, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, pages, age):
        return self.layers(torch.cat([self.pages(pages), age[:, None].float()], 1))[:, 0]


model = ClickModel()
optimizer = torch.optim.SGD(model.parameters(), 0.05)
loader = DataLoader(Clicks(), batch_size=256, num_workers=2 if run.fixed else 0)
for pages, age, clicked in run.over(loader):
    loss = nn.functional.binary_cross_entropy_with_logits(model(pages, age), clicked.float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
