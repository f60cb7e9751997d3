"""Passes in evaluation mode before the first step: an evaluation, a try, or another network's."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
how = sys.argv[1]
network = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
first = nn.Sequential(nn.Linear(8, 8)) if how == "another network" else network
data = torch.randn(64, 8)
first.eval()
with torch.no_grad():
    if how == "some batches":
        for number, (batch,) in enumerate(DataLoader(TensorDataset(data), batch_size=8)):
            if number == 2:
                break
            first(batch)
    elif how == "all batches":
        for (batch,) in DataLoader(TensorDataset(data), batch_size=8):
            first(batch)
    else:
        for _ in range(1 if how == "a try" else 3):
            first(data)
time.sleep(1.0)  # such as a download
network.train()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(5):
    loss = network(data).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
