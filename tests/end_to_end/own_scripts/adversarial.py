"""A script in the style of DCGAN: two networks with an optimiser each, which step in turn."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
critic = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer_d = torch.optim.Adam(critic.parameters(), lr=1e-3)
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(400, 16)), batch_size=20)
criterion = nn.BCEWithLogitsLoss()
for _ in range(3):
    for (real,) in loader:
        ones = torch.ones(len(real), 1)
        zeros = torch.zeros(len(real), 1)
        critic.zero_grad()
        loss_real = criterion(critic(real), ones)
        loss_real.backward()
        fake = generator(torch.randn(len(real), 8))
        loss_fake = criterion(critic(fake.detach()), zeros)
        loss_fake.backward()
        optimizer_d.step()
        generator.zero_grad()
        criterion(critic(fake), ones).backward()
        optimizer_g.step()
        print("loss", repr((loss_real + loss_fake).item()))
    with torch.no_grad():
        generator(torch.randn(4, 8))
