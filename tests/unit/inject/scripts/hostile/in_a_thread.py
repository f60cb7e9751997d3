"""Trains in threads, and raises in one."""

import threading

import torch


def train(seed: int) -> None:
    weight = torch.full((2,), float(seed), requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        (weight**4).sum().backward()
        optimizer.step()
    print(seed, weight.tolist())
    if seed == 2:
        raise ValueError("in a thread")


for seed in (1, 2):
    thread = threading.Thread(target=train, args=(seed,))
    thread.start()
    thread.join()
