"""Several forward passes before a backward pass: of the same examples, others, or time steps."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Linear(8, 8)
critic = nn.Linear(8, 8)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(30):
    state = torch.randn(32, 8)
    if sys.argv[1] == "time":
        for _ in range(3 + step % 5):
            state = torch.tanh(network(state))
    elif sys.argv[1] == "triplet":
        state = network(state) + network(torch.randn(32, 8)) - network(torch.randn(32, 8))
    elif sys.argv[1] == "one tensor":
        state = network(state) - critic(state)
    elif sys.argv[1] == "in place":
        # Frozen weights need no input for their gradients, so that it may change.
        critic.weight.requires_grad_(False)
        changed = critic(state)
        state = changed + network(state.normal_())
    else:
        network(torch.randn(32, 8)).square().mean().backward()
        state = network(state)
    optimizer.zero_grad()
    state.square().mean().backward()
    optimizer.step()
