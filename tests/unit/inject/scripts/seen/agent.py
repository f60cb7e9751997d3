"""Steps once an episode of a length that differs; each action is a forward pass of one row."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2), nn.LogSoftmax(-1))
optimizer = torch.optim.Adam(policy.parameters())
for episode in range(30):
    chances = [policy(torch.randn(1, 4))[0, episode % 2] for _ in range(5 + episode % 7)]
    loss = -torch.stack(chances).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
