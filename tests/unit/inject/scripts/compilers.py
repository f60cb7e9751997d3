"""Prints what compilers and importers make that look at their caller or at source code."""

import dataclasses
import enum
import importlib
import pickle
import typing

import torch
from torch import nn

torch.manual_seed(0)


@torch.jit.script
class Moments:
    def __init__(self, mean: float) -> None:
        self.mean = mean

    def shifted(self, by: float) -> float:
        return self.mean + by


@torch.jit.script
@dataclasses.dataclass
class Point:
    x: float
    y: float


class Kind(enum.Enum):
    A = 1
    B = 2


@torch.jit.interface
class Layer:
    def apply(self, x: torch.Tensor) -> torch.Tensor:
        pass


@torch.jit.script
def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


@torch.jit.script_if_tracing
def shortened(x: torch.Tensor) -> torch.Tensor:
    return x[: x.size(0) // 2]


@torch.jit.ignore
def python_only(x: torch.Tensor) -> torch.Tensor:
    return x + 1


class Pair(typing.NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> Pair:
        return Pair(self.layer(x), double(x))

    @torch.jit.export
    def other(self, x: torch.Tensor) -> torch.Tensor:
        return python_only(self.layer(x))


class Chooser(nn.Module):
    def forward(self, x: torch.Tensor, kind: Kind) -> torch.Tensor:
        return x if kind == Kind.A else -x


X = torch.arange(4.0)


def traced_optimizer_step() -> object:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scripted = torch.jit.script(net)
    scripted(X).first.sum().backward()
    optimizer.step()
    return scripted(X).first


def exported() -> object:
    return torch.export.export(nn.Linear(4, 2), (X,)).graph_module.code


def functional() -> object:
    net = nn.Linear(4, 2)
    weights = dict(net.named_parameters())

    def loss(values: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.func.functional_call(net, values, (X,)).sum()

    return torch.func.grad(loss)(weights)["weight"]


def compiled_eagerly() -> object:
    net = nn.Linear(4, 2)
    return torch.compile(net, backend="eager")(X).sum()


FORMS = {
    "class": lambda: Moments(1.0).shifted(2.0),
    "dataclass": lambda: Point(1.0, 2.0).x,
    "interface": lambda: Layer.__name__,
    "module": lambda: torch.jit.script(Net())(X).second,
    "exported method": lambda: torch.jit.script(Net()).other(X).shape,
    "enumeration": lambda: torch.jit.script(Chooser())(X, Kind.B),
    "trace": lambda: torch.jit.trace(Net().layer, X).code,
    "script if tracing": lambda: torch.jit.trace(lambda x: shortened(x), X)(X),
    "fx": lambda: torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 2), nn.ReLU())).code,
    "optimizer after script": traced_optimizer_step,
    "export": exported,
    "function transforms": functional,
    "compile": compiled_eagerly,
    "pickled": lambda: pickle.loads(pickle.dumps(nn.Linear(4, 2))).weight.shape,
}
for name, form in FORMS.items():
    print(name, form())
for module in (
    "torch.distributed.optim",
    "torch.distributed.fsdp",
    "torch.distributed.checkpoint",
    "torch.distributed.pipelining",
    "torch.distributed.nn",
    "torch.distributed.algorithms.join",
    "torch.ao.quantization",
    "torch.package",
    "torch.utils.checkpoint",
    "torch.utils.data.datapipes.iter",
    "torch.nn.utils.parametrizations",
    "torch.multiprocessing.spawn",
):
    print(importlib.import_module(module).__name__)
