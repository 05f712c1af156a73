"""Learns a room's echo: a convolution of audio with a kernel of 1,024 samples, done directly.

Planted: the convolution with a huge kernel. Fix: multiply in the frequency domain (torch.fft).
"""
TRUTH = {
    "framework": "pytorch", "first_finding": "dominant-op",
    "also_right": ["compute-bound"], "same_fix": [], "must_name": ["conv"], "healthy": False, "kind": "compute",
    "fix": "torch.fft.irfft(rfft(audio) * rfft(kernel)) instead of conv1d",
}
from _driver import Run

run = Run("torch", warm=3, steps=10)
import torch
import torch.nn.functional as F
from torch import nn

LENGTH, TAPS = 8192, 1024


class Room(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(TAPS) * torch.exp(-torch.arange(TAPS) / 300) * 0.1)
        self.gain = nn.Sequential(nn.Conv1d(1, 16, 9, padding=4), nn.Tanh(), nn.Conv1d(16, 1, 9, padding=4))

    def forward(self, audio):
        dry = self.gain(audio[:, None])
        if run.fixed:
            size = LENGTH + TAPS
            wet = torch.fft.irfft(torch.fft.rfft(dry[:, 0], size) * torch.fft.rfft(self.kernel, size), size)
            return wet[:, :LENGTH]
        return F.conv1d(F.pad(dry, (TAPS - 1, 0)), self.kernel.flip(0)[None, None])[:, 0]


torch.manual_seed(23)
room = Room()
optimizer = torch.optim.Adam(room.parameters(), 1e-3)
dry, wet = torch.randn(4, LENGTH), torch.randn(4, LENGTH)
for step in run.loop():
    loss = (room(dry) - wet).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
