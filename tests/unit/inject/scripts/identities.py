"""Prints what scripts compare, and that their own classes work."""

import collections
import copy
import functools
import inspect
import io
import pickle
import warnings

import torch
import torch.distributed.optim
from torch import nn


def twice(value: float) -> float:
    return 2.0 * value


@torch.jit.script
class Scale:
    def __init__(self, value: float):
        self.value = twice(value)


@torch.jit.script
def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * twice(2.0)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class Tagged(torch.Tensor):
    """A class of tensors of the script's own."""


def saved(thing: object) -> bytes:
    file = io.BytesIO()
    torch.save(thing, file)
    return file.getvalue()


print(Scale(2.0).value, scaled(torch.ones(1)))
net = Net()
before = pickle.dumps(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
for _ in range(4):
    optimizer.zero_grad()
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    net.zero_grad()
print("pickle", pickle.dumps(net) == before, len(saved(net)) == len(saved(Net())))
hooks = net._forward_pre_hooks
print("copied by its type", type(hooks)({}) == hooks == type(hooks)())
script = torch.jit.script(net)
torch.jit.save(script, io.BytesIO())
torch.jit.save(torch.jit.trace(net, torch.ones(2, 4)), io.BytesIO())
print("graph", torch.jit.trace(net, torch.ones(2, 4)).graph)
print("exported", len(torch.export.export(net, (torch.ones(2, 4),)).graph.nodes))
for each in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
    print(type(each).__name__, each.layer.weight.shape, isinstance(each, nn.Module))
print(torch.save is torch.serialization.save, torch.Tensor.item is torch._C.TensorBase.item)
print(torch.Tensor.backward is torch.Tensor.__dict__["backward"])
print(torch.overrides.get_testing_overrides().keys() >= {torch.Tensor.item, torch.Tensor.backward})
x = torch.ones(())
print(type(x.item), x.item.__name__, x.item.__self__ is x, x.item == x.item, hasattr(x, "item"))
print(inspect.ismethod(x.backward), inspect.isbuiltin(x.item), [*map(torch.Tensor.item, [x])])
print(pickle.loads(pickle.dumps(functools.partial(torch.save, x))).func is torch.save)
print(pickle.loads(pickle.dumps(torch.set_num_threads)) is torch.set_num_threads)
print(isinstance(optimizer, torch.optim.Optimizer), type(optimizer) is torch.optim.SGD)
print(torch.compile is torch.compile, "__getstate__" in vars(nn.Module))
tagged = torch.ones(3).as_subclass(Tagged).requires_grad_()
(tagged * 2).sum().backward()
print(type(tagged.grad).__name__, type(tagged.sum()).__name__, tagged.sum().item())
handle = net.register_forward_pre_hook(lambda *_: print("a hook of the script's own"))
net(torch.ones(1, 4))
handle.remove()
print(len(list(net._forward_pre_hooks.values())))
hooks = Net()._forward_pre_hooks
print(hooks, type(hooks)(hooks), type(hooks)([("a", 1)]), type(hooks)(a=1), hooks | {"a": 1})
print(
    hooks.fromkeys("a"), copy.copy(hooks), copy.deepcopy(hooks), hooks == collections.OrderedDict()
)
warnings.simplefilter("always")
