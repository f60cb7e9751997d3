"""The test set is computed in training mode and with gradients, or batches are read ahead."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def ahead(batches):
    iterator = iter(batches)
    batch = next(iterator)
    for following in iterator:
        yield batch
        batch = following
    yield batch


torch.manual_seed(0)
network = nn.Linear(8, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(160, 8), torch.randn(160, 1)), batch_size=4)
held_out = torch.randn(40, 8)
for _ in range(2 if "residual" not in sys.argv else 0):
    for step, (batch, target) in enumerate(ahead(loader) if "ahead" in sys.argv else loader):
        output = network(batch)
        if "twice" in sys.argv:
            output = output + network(batch)
        loss = nn.functional.mse_loss(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if "predicts" in sys.argv and step % 10 == 0:
            for part in held_out.split(10):
                network(part).detach().numpy()

batches = iter(loader if "residual" in sys.argv else ())
for _ in range(20 if "residual" in sys.argv else 0):
    residual = network(held_out).square().mean()
    batch, target = next(batches)
    loss = nn.functional.mse_loss(network(batch), target) + residual
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
