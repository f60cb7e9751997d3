"""A copy of the network that is made in inference mode is evaluated now and then."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Linear(8, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
inputs = torch.randn(32, 8)


@torch.inference_mode()
def evaluate():
    average = copy.deepcopy(network).eval()
    average(inputs)
    average(inputs)


for step in range(40):
    loss = nn.functional.mse_loss(network(torch.randn(32, 8)), torch.ones(32, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
    if step % 10 == 9:
        evaluate()
