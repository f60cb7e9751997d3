"""Steps from the whole data, and predictions in training mode from other data, after each step."""

import torch
from torch import nn

torch.manual_seed(0)
data = torch.randn(60, 8)
target = data.sum(1, keepdim=True)


def train():
    inputs = data[:40]
    held_out = data[40:].clone()
    network = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.LBFGS(network.parameters(), lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(network(inputs), target[:40])
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
        with torch.no_grad():
            network(held_out)


train()
