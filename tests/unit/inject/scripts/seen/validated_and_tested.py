"""Validation and test follow each other, with loaders or without, and with equal functions."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
network = nn.Linear(8, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
inputs = torch.randn(96, 8)
targets = (inputs[:, 0] > 0).long()


def outputs_of(batch):
    return network(batch)


def ahead(batches):
    iterator = iter(batches)
    batch = next(iterator)
    for following in iterator:
        yield batch
        batch = following
    yield batch


def tested(batches):
    network.eval()
    with torch.no_grad():
        for batch, _ in ahead(batches) if sys.argv[1] == "loaders, ahead" else batches:
            outputs_of(batch)
            outputs_of(batch.clone())


def parts(rows):
    data = TensorDataset(inputs[rows], targets[rows])
    if sys.argv[1].startswith("loaders"):
        return DataLoader(data, batch_size=8)
    return [data[:8], data[8:]]


training = parts(slice(0, 64))
validation = parts(slice(64, 80))
test = parts(slice(80, 96))
for _ in range(5):
    network.train()
    for batch, target in training:
        loss = nn.functional.cross_entropy(network(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    tested(validation)
    tested(test)
