"""Cross-validation with loaders, epochs of a few steps and evaluation mode; all is kept."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

kept = []
for fold in range(5):
    torch.manual_seed(fold)
    network = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    inputs = torch.randn(120, 8)
    data = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    train = DataLoader(torch.utils.data.Subset(data, range(80)), batch_size=16)
    test = DataLoader(torch.utils.data.Subset(data, range(80, 120)), batch_size=16)
    kept.append((network, optimizer))
    for _ in range(6):
        network.train()
        for batch, targets in train:
            loss = nn.functional.cross_entropy(network(batch), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            for batch, _ in test:
                network(batch)
