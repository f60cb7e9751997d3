"""Learns from some rows of its input only, as from the labelled nodes of a graph."""

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Linear(8, 3)
inputs = torch.randn(100, 8)
labelled = torch.arange(60)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(30):
    loss = nn.functional.cross_entropy(network(inputs)[labelled], labelled % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
