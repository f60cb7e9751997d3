"""Two networks learn in turn, the first one five times as often."""

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Linear(8, 1)
generator = nn.Linear(4, 8)
of_critic = torch.optim.SGD(critic.parameters(), lr=0.01)
of_generator = torch.optim.SGD(generator.parameters(), lr=0.01)
for _ in range(12):
    for _ in range(5):
        drawn = generator(torch.randn(16, 4)).detach()
        loss = critic(drawn).mean() - critic(torch.randn(16, 8)).mean()
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
    loss = -critic(generator(torch.randn(16, 4))).mean()
    of_generator.zero_grad()
    loss.backward()
    of_generator.step()
