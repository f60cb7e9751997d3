"""Two networks learn in turn: the first one twice as often, from two losses that are added up."""

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Linear(8, 1)
generator = nn.Linear(4, 8)
of_critic = torch.optim.SGD(critic.parameters(), lr=0.01)
of_generator = torch.optim.SGD(generator.parameters(), lr=0.01)
for _ in range(30):
    for _ in range(2):
        of_critic.zero_grad()
        fake = critic(generator(torch.randn(16, 4)).detach()).mean()
        fake.backward()
        real = -critic(torch.randn(16, 8)).mean()
        real.backward()
        of_critic.step()
        print((fake + real).item())
    loss = -critic(generator(torch.randn(16, 4))).mean()
    of_generator.zero_grad()
    loss.backward()
    of_generator.step()
