"""A script that keeps something of each step, and trains for as many steps as its argument says."""

import sys
import time

import torch

torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = []
for _ in range(int(sys.argv[1])):
    loss = model(torch.ones(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(bytearray(b"x" * 500_000))
    time.sleep(0.01)
