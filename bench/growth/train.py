"""A training whose steps take longer and longer, by a planted amount.

    python bench/growth/train.py KIND SHARE STEPS

KIND is what grows: list, tensor, graph or memory. SHARE is by how much each step is longer than the
one before, as a share of the first ones, at least: to let something grow takes time, too. It prints
by how many seconds each step was longer, by its own clock, and how many bytes each step has kept; 0
of a graph, which has no simple size.
"""

import itertools
import statistics
import sys
import time

import torch

kind, share, steps = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(
    torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.Linear(512, 10)
)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
x = torch.randn(256, 256)
y = torch.randint(0, 10, (256,))


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


class List:
    """A mean over a list of all losses."""

    def __init__(self):
        self.kept = []

    def grow(self, number):
        self.kept.extend([1.0] * number)

    def use(self):
        total = 0.0
        for each in self.kept:
            total += each
        return total


class Tensor:
    """A mean over a tensor of all outputs."""

    def __init__(self):
        self.kept = torch.empty(0)

    def grow(self, number):
        self.kept = torch.cat([self.kept, torch.ones(number)])

    def use(self):
        return (self.kept * 2).mean()


class Graph:
    """A sum of all losses with its graph, which is differentiated in each step."""

    def __init__(self):
        self.weight = torch.ones((), requires_grad=True)
        self.total = self.weight * 1.0

    def grow(self, number):
        for _ in range(number):
            self.total = self.total + self.weight

    def use(self):
        return torch.autograd.grad(self.total, self.weight, retain_graph=True)


class Memory:
    """A log in memory, of which each step takes a copy."""

    def __init__(self):
        self.kept = bytearray()

    def grow(self, number):
        self.kept += bytes(number)

    def use(self):
        return bytes(self.kept)


def seconds(call, times):
    shortest = 1e9
    for _ in range(times):
        start = time.perf_counter()
        call()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


kinds = {"list": List, "tensor": Tensor, "graph": Graph, "memory": Memory}
many = {"list": 100_000, "tensor": 2_000_000, "graph": 1_000, "memory": 50_000_000}[kind]
of_step = seconds(step, 20)
tried = kinds[kind]()
empty = seconds(tried.use, 3)
tried.grow(many)
each = (seconds(tried.use, 5) - empty) / many
del tried
number = round(share * of_step / each)
grows = kinds[kind]()
ended = [time.perf_counter()]
for _ in range(steps):
    step()
    grows.grow(number)
    grows.use()
    ended.append(time.perf_counter())
durations = [later - earlier for earlier, later in itertools.pairwise(ended)]
tenth = steps // 10
first = statistics.median(durations[tenth : 2 * tenth])
last = statistics.median(durations[-tenth:])
size = {"list": 8, "tensor": 4, "graph": 0, "memory": 1}[kind]
print((last - first) / (steps - 2 * tenth), size * number)
