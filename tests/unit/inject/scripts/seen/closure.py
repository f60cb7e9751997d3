"""A closure is called up to five times for each step."""

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Linear(8, 1)
inputs = torch.randn(64, 8)
optimizer = torch.optim.LBFGS(network.parameters(), lr=0.1, max_iter=5)


def closure() -> torch.Tensor:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(network(inputs), inputs[:, :1])
    loss.backward()
    return loss


for _ in range(20):
    print(optimizer.step(closure).item())
