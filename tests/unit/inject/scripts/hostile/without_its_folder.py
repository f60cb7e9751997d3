"""Removes the folder that it works in, and trains on."""

import os
import shutil
from pathlib import Path

import torch

weight = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)  # PyTorch itself asks for the folder here
folder = Path("scratch").absolute()
folder.mkdir(exist_ok=True)
os.chdir(folder)
shutil.rmtree(folder)
for _ in range(4):
    optimizer.zero_grad()
    weight.square().sum().backward()
    optimizer.step()
    print(weight.item().hex())
try:
    Path.cwd()
except FileNotFoundError as error:
    print(error)
