"""Weights are so small that a CPU computes slowly with them."""

import time

import torch

torch.manual_seed(0)
model = torch.nn.Linear(64, 64, bias=False)
with torch.no_grad():
    model.weight.fill_(1e-40)
optimizer = torch.optim.SGD(model.parameters(), 0.0)
for _ in range(60):
    time.sleep(0.005)  # it is looked at, and reported, by samples
    loss = model(torch.ones(8, 64)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
