"""A small script of a user, for `explain` and `measure`: dense layers on random data.

python train.py DEVICE
"""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = sys.argv[1]
torch.manual_seed(0)
examples = torch.randn(20_000, 64)
labels = (examples[:, :2].sum(dim=1) > 0).long()
loader = DataLoader(TensorDataset(examples, labels), batch_size=64, shuffle=True)
model = nn.Sequential(
    nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2)
).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(5):
    total = 0.0
    for x, y in loader:
        x = x.to(DEVICE)
        y = y.to(DEVICE)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}", flush=True)
