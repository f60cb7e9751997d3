"""Three evaluations between steps, and one that follows the last step."""

import time

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Linear(8, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
inputs = torch.randn(32, 8)


def evaluate(seconds):
    network.eval()
    with torch.no_grad():
        network(inputs)
        time.sleep(seconds)
        network(inputs)
    network.train()


for step in range(40):
    loss = nn.functional.mse_loss(network(torch.randn(32, 8)), torch.ones(32, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step in (9, 19, 29):
        evaluate(0.1)
evaluate(2)
