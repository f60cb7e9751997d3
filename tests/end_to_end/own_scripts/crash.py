"""A script that starts itself anew, and fails after three steps with an exit code other than 1."""

import os
import sys

if len(sys.argv) == 1:
    os.execv(sys.executable, [sys.executable, __file__, "again"])

import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(8, 4)).square().mean().backward()
    optimizer.step()
print("the last words")
sys.exit(7)
