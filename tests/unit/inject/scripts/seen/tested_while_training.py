"""Tests on another loader after each epoch, without ever setting its network to evaluation mode."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
network = nn.Linear(8, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
keeps_loaders = sys.argv[1:] == ["kept"]


def loader(examples: int) -> DataLoader:
    inputs = torch.randn(examples, 8)
    return DataLoader(TensorDataset(inputs, (inputs[:, 0] > 0).long()), batch_size=16)


train = loader(160)
test = loader(80)
for _ in range(4):
    if not keeps_loaders:
        train = loader(160)
        test = loader(80)
    for inputs, targets in train:
        with torch.no_grad():  # what a teacher would say
            network(inputs)
        loss = nn.functional.cross_entropy(network(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for inputs, _ in test:
            network(inputs).argmax(1)
