"""Cross-validation of copies of a network, saved and loaded in between. 9 steps."""

import copy
import io

import torch
from torch import nn

torch.manual_seed(0)
first = nn.Linear(4, 1)
for fold in range(3):
    model = copy.deepcopy(first)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(8, 4)
        loss = (model(x) - x[:, :1]).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(fold, loss.item().hex())
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    print(torch.load(file, weights_only=False)(torch.ones(1, 4)).item().hex())
