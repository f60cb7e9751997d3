"""Two optimisers of the parts of one network, which share a loss that falls."""

import torch
from torch import nn

torch.manual_seed(0)
first = nn.Linear(8, 16)
second = nn.Linear(16, 1)
optimizers = [torch.optim.SGD(each.parameters(), lr=0.01) for each in (first, second)]
for _ in range(60):
    inputs = torch.randn(32, 8)
    loss = nn.functional.mse_loss(second(first(inputs)), inputs[:, :1])
    for each in optimizers:
        each.zero_grad()
    loss.backward()
    for each in optimizers:
        each.step()
