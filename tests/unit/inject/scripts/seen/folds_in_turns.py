"""Cross-validation whose networks all train for an epoch before the next epoch begins."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Network(nn.Module):
    """A layer, with a hash that needs what its constructor has not made yet."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 2)
        self.name = "network"

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        raise RuntimeError("networks are not compared")

    def forward(self, batch):
        return self.layer(batch)


def train():
    torch.manual_seed(0)
    inputs = torch.randn(120, 8)
    data = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    networks = [Network() for _ in range(3)]
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in networks]
    for _ in range(2):
        for network, optimizer in zip(networks, optimizers, strict=True):
            network.train()
            for batch, targets in DataLoader(data, batch_size=11):
                loss = nn.functional.cross_entropy(network(batch), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            network.eval()
            with torch.no_grad():
                for batch, _ in DataLoader(data, batch_size=60):
                    network(batch)


train()
