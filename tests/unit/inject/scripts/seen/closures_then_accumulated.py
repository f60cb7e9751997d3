"""First L-BFGS, whose closure repeats a tensor with other weights; then accumulated gradients."""

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Linear(8, 1)
inputs = torch.randn(32, 8)
target = torch.randn(32, 1)


def loss_of(rows):
    return nn.functional.mse_loss(network(inputs[rows]), target[rows])


def closure():
    network.zero_grad()
    loss = nn.functional.mse_loss(network(inputs), target)
    loss.backward()
    return loss


optimizer = torch.optim.LBFGS(network.parameters(), max_iter=4)
for _ in range(10):
    optimizer.step(closure)
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
for _ in range(30):
    optimizer.zero_grad()
    total = 0.0
    for part in range(4):
        loss = loss_of(slice(8 * part, 8 * part + 8))
        loss.backward()
        total += loss.item()
    print(total)
    optimizer.step()
