"""Trains one network by one optimiser, then by another, as with layers that are frozen first."""

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
for trained in (network[2], network):
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.01)
    for _ in range(40):
        inputs = torch.randn(32, 8)
        loss = nn.functional.mse_loss(network(inputs), inputs[:, :1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
