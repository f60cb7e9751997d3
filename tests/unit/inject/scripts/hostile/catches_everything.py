"""Catches every exception, steps in a ``finally``, and raises as it ends."""

import atexit
import sys

import torch

weight = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)


def step() -> None:
    optimizer.zero_grad()
    weight.square().sum().backward()
    optimizer.step()
    print(weight.item().hex())


def fail() -> None:
    raise RuntimeError("at exit")


atexit.register(fail)
for number in range(6):
    try:
        if number % 2:
            raise KeyboardInterrupt
        step()
    except:  # noqa: E722
        print("caught", sys.exc_info()[0])
    finally:
        step()
sys.exit(3)
