"""Intensive-care records: twelve small .pt files per patient, one per signal, loaded with torch.load.

Planted: hundreds of small files per batch. Fix: the signals of all patients in one file, loaded once.
"""
TRUTH = {
    "change": "pack-files",
    "framework": "pytorch", "first_finding": "input-small-files",
    "also_right": ["input-file-read", "input-python", "input-bound"], "same_fix": ["input-file-read"],
    "must_name": ["DataLoader"], "healthy": False, "kind": "input",
    "fix": "torch.load(\"signals.pt\") once in __init__ instead of twelve torch.load per item",
}
from _driver import Run

run = Run("torch", warm=5, steps=20)
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PATIENTS, SIGNALS, LENGTH = 160, 12, 96
torch.manual_seed(5)
records = torch.randn(PATIENTS, SIGNALS, LENGTH)
if run.fixed:
    torch.save(records, run.scratch / "signals.pt")
else:
    for patient in range(PATIENTS):
        for signal in range(SIGNALS):
            torch.save(records[patient, signal].clone(), run.scratch / f"{patient:04}-{signal:02}.pt")


class Patients(Dataset):
    def __init__(self, folder):
        self.folder = folder
        if run.fixed:
            self.signals = torch.load(folder / "signals.pt")

    def __len__(self):
        return PATIENTS

    def __getitem__(self, patient):
        if run.fixed:
            return self.signals[patient], float(patient % 2)
        signals = [torch.load(self.folder / f"{patient:04}-{signal:02}.pt") for signal in range(SIGNALS)]
        return torch.stack(signals), float(patient % 2)


class SepsisModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.GRU(SIGNALS, 48, batch_first=True)
        self.head = nn.Linear(48, 1)

    def forward(self, signals):
        _, last = self.encoder(signals.transpose(1, 2))
        return self.head(last[0])[:, 0]


model = SepsisModel()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
criterion = nn.BCEWithLogitsLoss()
for signals, sepsis in run.over(DataLoader(Patients(run.scratch), batch_size=32, shuffle=True)):
    optimizer.zero_grad()
    loss = criterion(model(signals), sepsis.float())
    loss.backward()
    optimizer.step()
