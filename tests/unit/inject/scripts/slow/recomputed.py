"""Activations are computed again in the backward pass."""

import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
torch.set_num_threads(1)
blocks = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh()) for _ in range(4)]
model = torch.nn.Sequential(*blocks)
x = torch.randn(256, 256)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(60):
    out = x
    for block in blocks:
        out = checkpoint(block, out, use_reentrant=False)
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
