"""A script that keeps the outputs of all steps in one tensor, for a running accuracy."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)  # two threads wait for each other for long on a busy machine
torch.manual_seed(0)
x = torch.randn(20_000, 32)
labels = (x[:, 0] + x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))
optimizer = torch.optim.Adam(model.parameters())
kept = torch.empty(0, 32)
right = torch.empty(0, dtype=torch.long)
steps = int(sys.argv[1])
step = 0
while step < steps:
    for inputs, targets in DataLoader(TensorDataset(x, labels), 100, shuffle=True):
        outputs = model(inputs)
        loss = nn.functional.cross_entropy(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept = torch.cat([kept, outputs.detach()])
        right = torch.cat([right, targets])
        accuracy = (kept.argmax(1) == right).float().mean()
        step += 1
        if step == steps:
            break
    print(step, loss.item(), accuracy.item(), flush=True)
