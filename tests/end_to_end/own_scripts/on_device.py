"""A script that trains on the CPU, whatever device is requested, and prints each loss.

If another device than the CPU is requested, it uses a single thread, so that it is also quick on a
busy machine.
"""

import argparse
import os

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("device", help="what it is asked for")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument(
        "--fix", choices=("call", "variable", "compile"), help="what fixes the number of threads"
    )
    options = parser.parse_args()
    if options.fix == "call" or options.device != "cpu":
        torch.set_num_threads(1)
    if options.fix == "variable":
        os.environ["OMP_NUM_THREADS"] = "1"
    if options.fix == "compile":
        torch.compile(torch.relu)
    torch.manual_seed(0)
    x = torch.randn(1024, 256)
    y = torch.randint(0, 10, (1024,))
    model = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(options.steps):
        batch = torch.randint(0, 1024, (128,))
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(repr(loss.item()))


if __name__ == "__main__":
    main()
