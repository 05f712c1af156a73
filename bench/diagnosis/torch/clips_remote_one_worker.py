"""Bird calls from a network share: each clip takes some milliseconds to arrive, then its spectrogram is taken. A
Trainer class runs the model.

Planted: one worker, which waits for the share most of the time. Fix: eight workers.
"""
TRUTH = {
    "change": "input-workers",
    "framework": "pytorch", "first_finding": "input-python",
    "also_right": ["input-bound", "input-file-read"], "must_name": ["DataLoader"], "healthy": False, "kind": "input",
    "fix": "DataLoader(clips, batch_size=16, num_workers=8)",
}
import time

from _driver import Run

run = Run("torch", warm=8, steps=24)
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class BirdCalls(Dataset):
    """The share is imitated: a read takes 5 ms, whatever the machine does meanwhile."""

    def __init__(self, size):
        self.size = size
        self.window = torch.hann_window(256)

    def __len__(self):
        return self.size

    def read(self, index):
        time.sleep(0.005)
        return torch.randn(8000, generator=torch.Generator().manual_seed(index))

    def __getitem__(self, index):
        spectrum = torch.stft(self.read(index), 256, 128, window=self.window, return_complex=True).abs()
        return torch.log1p(spectrum)[:128, :60], index % 12


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
        self.criterion = nn.CrossEntropyLoss()
        self.seen = 0

    def training_step(self, batch):
        spectra, species = batch
        loss = self.criterion(self.model(spectra.unsqueeze(1)), species)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.seen += len(species)

    def fit(self):
        self.model.train()
        for batch in run.over(self.loader):
            self.training_step(batch)


if __name__ == "__main__":
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(1, 16, 5, 2), nn.GELU(), nn.Conv2d(16, 32, 5, 2), nn.GELU(),
                          nn.AdaptiveMaxPool2d(4), nn.Flatten(), nn.Linear(512, 12))
    loader = DataLoader(BirdCalls(2000), batch_size=16, shuffle=True, num_workers=8 if run.fixed else 1)
    Trainer(model, loader).fit()
