"""Each step moves the weights to where the loss is higher, and computes the batch again there."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(80, 8), torch.randn(80, 1)), batch_size=4)
for batch, target in loader:
    loss = nn.functional.mse_loss(network(batch), target)
    loss.backward()
    print(loss.item())
    before = [weight.detach().clone() for weight in network.parameters()]
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.05 * weight.grad
    optimizer.zero_grad()
    nn.functional.mse_loss(network(batch), target).backward()
    with torch.no_grad():
        for weight, value in zip(network.parameters(), before, strict=True):
            weight.copy_(value)
    optimizer.step()
    optimizer.zero_grad()
