"""Two networks of the same type, both called in each step, with a loader."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
decoder = nn.Sequential(nn.Linear(16, 8), nn.ReLU())
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(160, 8)), batch_size=4)
for _ in range(20):
    for (batch,) in loader:
        loss = nn.functional.mse_loss(decoder(encoder(batch)), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
