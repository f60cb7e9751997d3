"""Steps that call ``forward`` directly, which can't be seen; the network is called afterwards."""

import torch
from torch import nn

network = nn.Linear(8, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
data = torch.randn(16, 8)
for _ in range(10):
    loss = network.forward(data).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    network.forward(data)
network(data)
