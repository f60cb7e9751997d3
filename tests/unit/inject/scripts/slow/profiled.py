"""A training with a profiler, which the argument names, left on."""

import cProfile
import sys

import torch

PROFILERS = {"cProfile": cProfile.Profile, "torch": torch.profiler.profile}

torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)


def train():
    for _ in range(40):
        loss = model(torch.ones(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


with PROFILERS[sys.argv[1]]():
    train()
