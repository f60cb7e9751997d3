"""A recurrent network that takes time first: 12 steps of time of 5 sequences."""

import torch
from torch import nn

torch.manual_seed(0)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(4, 8)
        self.out = nn.Linear(8, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.out(self.layer(inputs)[0][-1])


network = Network()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(30):
    inputs = torch.randn(12, 5, 4)
    loss = nn.functional.mse_loss(network(inputs), inputs.sum((0, 2))[:, None])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
