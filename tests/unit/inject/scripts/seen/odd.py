"""Trainings that are odd in one way each: ``python odd.py KIND``."""

import sys
import time

import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

kind = sys.argv[1]
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(96, 8)


def train(batch, optimizer=optimizer):
    loss = (model(batch)[:, 0] - batch.sum(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.randn(8)


if kind == "no steps":
    model(inputs)
elif kind == "one step":
    train(inputs)
elif kind == "long steps":
    for _ in range(3):
        time.sleep(1.5)
        train(inputs)
elif kind == "a loss that is a string":
    for _ in range(10):

        def closure():
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            return str(loss.item())

        optimizer.step(closure)
elif kind == "thousands of optimisers":
    for _ in range(3000):
        train(inputs, torch.optim.SGD(model.parameters(), lr=0.01))
elif kind == "a loader without an end":
    for batch in DataLoader(Endless(), batch_size=4):
        train(batch)
elif kind == "growing batches":
    for size in (8, 16, 32):
        for (batch,) in DataLoader(TensorDataset(inputs), batch_size=size):
            train(batch)
