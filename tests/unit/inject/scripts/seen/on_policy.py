"""An agent whose steps are all computed from one tensor, after it has acted in training mode."""

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
seen = torch.randn(8, 4)
for _ in range(5):
    kept = []
    with torch.no_grad():
        for _ in range(6):
            kept.append(seen)
            seen = seen + 0.1 * network(seen)
        last = network(seen)
    batch = torch.cat(kept)
    for _ in range(4):
        loss = (network(batch) - last.mean()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
