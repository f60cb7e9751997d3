"""Trains in processes that others wait for: ``pool``, ``executor``, ``process`` or ``joblib``."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor


def train(steps: int) -> int:
    import torch

    torch.set_num_threads(1)
    weight = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1e-6)
    for _ in range(steps):
        optimizer.zero_grad()
        weight.square().sum().backward()
        optimizer.step()
    return steps


if __name__ == "__main__":
    steps = int(sys.argv[2])
    spawn = multiprocessing.get_context("spawn")
    if sys.argv[1] == "pool":
        with spawn.Pool(2) as pool:
            print(pool.map(train, [steps, steps, steps]))
    elif sys.argv[1] == "executor":
        with ProcessPoolExecutor(2) as executor:
            print([*executor.map(train, [steps, 5, steps])])
    elif sys.argv[1] == "short":  # the training that is reported ends by itself
        with spawn.Pool(2) as pool:
            print(pool.map(train, [5, steps], chunksize=1))
    else:
        process = spawn.Process(target=train, args=(steps,))
        process.start()
        process.join()
        print(process.exitcode)
