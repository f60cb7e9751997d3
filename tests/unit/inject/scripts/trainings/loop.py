"""The quickstart loop of PyTorch, with evaluations. 24 steps."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 20)
y = (x.sum(1) > 0).long()
train = DataLoader(TensorDataset(x[:192], y[:192]), batch_size=16, shuffle=True)
test = DataLoader(TensorDataset(x[192:], y[192:]), batch_size=64)
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(2):
    model.train()
    for batch, labels in train:
        loss = loss_fn(model(batch), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item().hex())
    model.eval()
    with torch.no_grad():
        for batch, labels in test:
            print(loss_fn(model(batch), labels).item().hex())
