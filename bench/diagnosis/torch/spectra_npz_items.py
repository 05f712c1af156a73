"""Infrared spectra, one compressed .npz file per measurement, opened in __getitem__.

Planted: each example is a small file of its own to open and to inflate. Fix: one array for all of them, memory-mapped.
"""
TRUTH = {
    "change": "pack-files",
    "framework": "pytorch", "first_finding": "input-small-files",
    "also_right": ["input-file-read", "input-python", "input-bound"], "same_fix": ["input-file-read"],
    "must_name": ["DataLoader"], "healthy": False, "kind": "input",
    "fix": "np.load(\"spectra.npy\", mmap_mode=\"r\")[index] instead of np.load(f\"{index}.npz\")",
}
from _driver import Run

run = Run("torch", warm=5, steps=20, with_stack=True, record_shapes=True)
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SPECTRA, WIDTH = 512, 2048
rng = np.random.default_rng(4)
spectra = np.round(np.cumsum(rng.standard_normal((SPECTRA, WIDTH)), 1), 2).astype(np.float32)
if run.fixed:
    np.save(run.scratch / "spectra.npy", spectra)
else:
    for index in range(SPECTRA):
        np.savez_compressed(run.scratch / f"{index}.npz", spectrum=spectra[index], label=index % 7)


class Spectra(Dataset):
    def __init__(self, folder):
        self.folder = folder
        self.packed = np.load(folder / "spectra.npy", mmap_mode="r") if run.fixed else None

    def __len__(self):
        return SPECTRA

    def __getitem__(self, index):
        if self.packed is not None:
            return torch.from_numpy(self.packed[index].copy()), index % 7
        with np.load(self.folder / f"{index}.npz") as file:
            return torch.from_numpy(file["spectrum"]), int(file["label"])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 8, 9, 4), nn.ReLU(), nn.Conv1d(8, 16, 9, 4), nn.ReLU())
        self.head = nn.Linear(16, 7)

    def forward(self, x):
        return self.head(self.features(x.unsqueeze(1)).mean(2))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for spectrum, label in run.over(DataLoader(Spectra(run.scratch), batch_size=32, shuffle=True)):
    loss = nn.functional.cross_entropy(model(spectrum), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
