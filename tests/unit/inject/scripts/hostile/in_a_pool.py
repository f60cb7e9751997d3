"""Trains in processes that others wait for.

    python in_a_pool.py WAY STEPS

WAY is a key of WAYS.
"""

import multiprocessing
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed

SPAWN = multiprocessing.get_context("spawn")


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


def train_rank(_rank: int, steps: int) -> None:
    train(steps)


def train_into(queue: "multiprocessing.Queue[int]", steps: int) -> None:
    queue.put(train(steps))


def pool(steps: int) -> object:
    with SPAWN.Pool(2) as workers:
        return workers.map(train, [steps, steps, steps])


def short(steps: int) -> object:
    """The training that is reported ends by itself."""
    with SPAWN.Pool(2) as workers:
        return workers.map(train, [5, steps], chunksize=1)


def executor(steps: int) -> object:
    with ProcessPoolExecutor(2) as workers:
        return [*workers.map(train, [steps, 5, steps])]


def process(steps: int) -> object:
    child = SPAWN.Process(target=train, args=(steps,))
    child.start()
    child.join()
    return child.exitcode


def forked(steps: int) -> object:
    with multiprocessing.get_context("fork").Pool(2) as workers:
        return workers.map(train, [steps, steps])


def forkserver(steps: int) -> object:
    with multiprocessing.get_context("forkserver").Pool(2) as workers:
        return workers.map(train, [steps, steps])


def one_by_one(steps: int) -> object:
    with SPAWN.Pool(2) as workers:
        return [*workers.imap_unordered(train, [steps, steps, steps])]


def apply_async(steps: int) -> object:
    with SPAWN.Pool(2) as workers:
        return [each.get() for each in [workers.apply_async(train, (steps,)) for _ in range(3)]]


def replaced_workers(steps: int) -> object:
    with SPAWN.Pool(1, maxtasksperchild=1) as workers:
        return workers.map(train, [5, steps, steps], chunksize=1)


def futures(steps: int) -> object:
    with ProcessPoolExecutor(2, mp_context=SPAWN) as workers:
        started = [workers.submit(train, steps) for _ in range(2)]
        return [each.result() for each in as_completed(started)]


def queue(steps: int) -> object:
    results = SPAWN.Queue()
    child = SPAWN.Process(target=train_into, args=(results, steps))
    child.start()
    return results.get()


def thread(steps: int) -> object:
    waiting = threading.Thread(target=process, args=(steps,))
    waiting.start()
    waiting.join()
    return "joined"


def program(steps: int) -> object:
    return subprocess.run([sys.executable, __file__, "here", str(steps)], check=True).returncode


def torch_spawn(steps: int) -> object:
    import torch.multiprocessing

    return torch.multiprocessing.spawn(train_rank, args=(steps,), nprocs=2)


def daemon(steps: int) -> object:
    child = SPAWN.Process(target=train, args=(steps,), daemon=True)
    child.start()
    child.join()
    return child.exitcode


WAYS = {
    "pool": pool,
    "short": short,
    "executor": executor,
    "process": process,
    "forked": forked,
    "forkserver": forkserver,
    "one-by-one": one_by_one,
    "apply-async": apply_async,
    "replaced-workers": replaced_workers,
    "futures": futures,
    "queue": queue,
    "thread": thread,
    "program": program,
    "torch-spawn": torch_spawn,
    "daemon": daemon,
    "here": train,
}

if __name__ == "__main__":
    print(WAYS[sys.argv[1]](int(sys.argv[2])))
