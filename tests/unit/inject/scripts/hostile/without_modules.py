"""Replaces ``sys.modules`` and ``sys.meta_path`` in the middle of a training."""

import sys

import torch

weight = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for number in range(6):
    optimizer.zero_grad()
    weight.square().sum().backward()
    optimizer.step()
    print(weight.item().hex())
    if number == 2:
        sys.modules = {}
        sys.meta_path = []
