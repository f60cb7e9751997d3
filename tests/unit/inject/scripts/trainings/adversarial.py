"""A GAN with two optimisers. 10 steps."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
for _ in range(10):
    real, fake = torch.randn(16, 2) + 3, generator(torch.randn(16, 4))
    of_critic.zero_grad()
    loss = criterion(critic(real), ones) + criterion(critic(fake.detach()), zeros)
    loss.backward()
    of_critic.step()
    of_generator.zero_grad()
    loss_of_generator = criterion(critic(fake), ones)
    loss_of_generator.backward()
    of_generator.step()
    print(loss.item().hex(), loss_of_generator.item().hex())
