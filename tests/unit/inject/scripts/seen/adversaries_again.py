"""Three trials of two networks that learn in turn; each trial frees the one before."""

import torch
from torch import nn


def trial() -> None:
    critic = nn.Linear(8, 1)
    generator = nn.Linear(4, 8)
    of_critic = torch.optim.SGD(critic.parameters(), lr=0.01)
    of_generator = torch.optim.SGD(generator.parameters(), lr=0.01)
    for _ in range(30):
        for optimizer in (of_critic, of_generator):
            loss = critic(generator(torch.randn(16, 4))).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


for _ in range(3):
    trial()
