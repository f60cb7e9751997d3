"""A script that does what an observer may trip over; started as ``python -m own_scripts.rough``."""

import copy
import importlib.abc
import multiprocessing
import os
import pickle
import signal
import sys
import threading


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        return None


sys.meta_path.insert(0, Finder())

import torch  # noqa: E402

os.chdir(sys.argv[1])


def other(number: int) -> None:
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(number):
        optimizer.zero_grad()
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()


def train() -> None:
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(12):
        model(torch.ones(8, 4)).square().mean().backward()
        optimizer.step()
        if step == 5:
            for each in (model, copy.deepcopy(model)):
                assert b"trainmark" not in pickle.dumps(each)
            torch.jit.script(copy.deepcopy(model))(torch.ones(8, 4))
            child = os.fork()
            if not child:
                other(30)
                os._exit(0)
            os.waitpid(child, 0)
        print("x" * 1_000_000)


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        pool.map(abs, range(4))
    # This comes late: the pool ends its processes by it, or hangs
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, lambda *_: None)
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
