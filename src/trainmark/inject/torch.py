"""What is observed of PyTorch, and of what is built on it: Lightning, Accelerate, Transformers."""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from . import accelerator
from .best_threads import Settable
from .by_hand import StepsByHand
from .identity import Identities
from .inside import leave
from .last_input import LastInput
from .observer import FEW, Observer, clock
from .patch import (
    Kind,
    around,
    give_back,
    inside,
    keep_places,
    leaves,
    length_of,
    note,
    time_reads,
    time_saves,
)
from .places import users_place

_READS = ("item", "tolist", "cpu", "numpy", "__float__", "__int__", "__bool__", "__format__")
"""Methods of a tensor that wait for its value."""
_SAMPLERS = {"torch.utils.data.sampler", "torch.utils.data.distributed", "builtins"}
"""Modules of PyTorch's own samplers. Asking a user's sampler for its length could change what it
draws."""
_LOSSES = (
    "NllLoss",
    "MseLoss",
    "SmoothL1Loss",
    "HuberLoss",
    "SoftMarginLoss",
    "BinaryCrossEntropy",
    "KlDiv",
)
"""Beginnings of the names of operators that compute a loss."""
_MOST_FRAMES = 40
"""Number of frames among which the call of an outer module is looked for."""
_MOST_NODES = 40
"""Number of operators before a loss among which its function is looked for."""
_SCALES: list[Any] = []
"""The scale of the gradient scaler that was used last."""


def install(torch: Any, observer: Observer) -> None:
    """Observe the trainings of this process."""
    by_hand = StepsByHand(torch, observer)
    network = _Network(torch, observer, by_hand)
    observer.look_for_last_step = by_hand.look
    observer.describe["torch"] = network.describe
    observer.device_bytes["torch"] = network.device_bytes
    observer.networks_unseen.add("torch")
    observer.trainings.weights_of["torch"] = _weights_of
    observer.read_losses["torch"] = network.read_losses
    patches: dict[str, Callable[[Any, Observer], object]] = {
        "optimizer steps": functools.partial(_steps, by_hand=by_hand),
        "Tensor.backward": functools.partial(_losses, by_hand=by_hand),
        "GradScaler": _scalers,
        "DataLoader": functools.partial(_loaders, by_hand=by_hand),
        "module places": _places,
        "tensor reads": _reads,
        "threads": _threads,
        "torch.save": _saves,
    }
    observer.attempt("forward", network.find)
    observer.attempt("torch.compile", network.give_back_reads)
    for name, patch in patches.items():
        observer.attempt(name, functools.partial(patch, torch, observer))


class _Hooks(OrderedDict):  # type: ignore[type-arg]
    """The hooks of a module before its forward pass: none of ours is among them.

    A module asks at each call whether it has any, which shows the call. A hook of ours would put
    a frame of PyTorch around the forward pass, would be compiled by TorchScript, and be saved with
    the module.
    """

    _module: weakref.ref[Any]
    _asked: Callable[[Any, Any], None]

    def __new__(cls, *args: Any, **more: Any) -> Any:
        """Return a plain dictionary: libraries make others of a dictionary's type."""
        return OrderedDict(*args, **more)

    @classmethod
    def of(cls, module: Any, asked: Callable[[Any, Any], None]) -> Any:
        """Return the hooks of a module, which call ``asked`` with the module and the caller."""
        hooks = super().__new__(cls)
        hooks._module = weakref.ref(module)
        hooks._asked = asked
        return hooks

    def __bool__(self) -> bool:
        module = self._module()
        if module is not None:
            self._asked(module, sys._getframe(1))
        return len(self) > 0

    def copy(self) -> OrderedDict[int, Any]:  # type: ignore[override]
        """Return the hooks alone."""
        return OrderedDict(self)

    def __repr__(self) -> str:
        return repr(OrderedDict(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return OrderedDict(self).__reduce_ex__(protocol)


class _Network:
    """The outermost module that is trained."""

    def __init__(self, torch: Any, observer: Observer, by_hand: StepsByHand) -> None:
        self._torch = torch
        self._observer = observer
        self._by_hand = by_hand
        self._root: Any = None
        self._autocast: Any = None
        self._last_input = LastInput()
        self._weight_state = (0, 0)
        self._tensor = torch.Tensor
        self._has_tokens = False
        self._most_ranks = 1
        self._takes_time_first: bool | None = None
        self._modules = Identities()
        self._call = torch.nn.Module._call_impl.__code__
        self._asked = observer.guarded(self._look)

    def find(self) -> None:
        """Take the first module that is called to train."""
        module = self._torch.nn.Module

        def made(arguments: dict[str, Any]) -> Generator[None, Any, None]:
            yield
            made = arguments["self"]
            is_alike = type(made) is type(self._root)  # that of another training
            if self._root is None or is_alike or type(made).__name__ == "OptimizedModule":
                self._follow(made)

        def restored(arguments: dict[str, Any]) -> Generator[None, Any, None]:
            yield
            restored = arguments["self"]
            if self._root is None or type(restored) is type(self._root):
                self._follow(restored)

        inside(module, "__init__", made, self._observer)
        inside(module, "__setstate__", restored, self._observer)
        note(module, "__init__", Kind.HOOKS)

    def give_back_reads(self) -> None:
        """Undo the patches of reads once the script compiles, since compilers look into tensors."""

        def compiles(_: Any) -> Generator[None, Any, None]:
            give_back(self._torch.Tensor, (*_READS, *accelerator.COPIES))
            leave(self._torch.Tensor.__format__)
            yield

        if hasattr(self._torch, "compile"):
            inside(self._torch, "compile", compiles, self._observer)

    def _follow(self, module: Any) -> None:
        """Observe the calls of a module."""
        own = vars(module)
        hooks = own.get("_forward_pre_hooks")
        if type(hooks) is OrderedDict and not hooks:
            own["_forward_pre_hooks"] = _Hooks.of(module, self._asked)
            self._modules.add(module)

    def _leave_others(self) -> None:
        """Observe no modules any more that are unlike the root.

        While they have no hooks, they show no calls.
        """
        for module in self._modules:
            own = vars(module)
            if not self._is_root(module) and not len(own["_forward_pre_hooks"]):
                own["_forward_pre_hooks"] = OrderedDict()
        self._modules.clear()

    def _look(self, module: Any, frame: Any) -> None:
        """A module has asked for its hooks; it is quick, since it runs in each step."""
        grad = self._torch.is_grad_enabled()
        trains = grad and module.training
        root = self._root
        if root is not None:
            is_known = not self._has_tokens and self._observer.is_steady and trains
            if is_known and module is root and frame.f_code is self._call:
                self._by_hand.look()
                self._observer.forward_begins()
            if is_known or not self._is_root(module) or self._is_inside(module, frame):
                return
        if self._torch.jit.is_tracing() or not self._is_call(module, frame):
            return
        if root is None and not self._trains(module, grad):
            if not trains:
                self._observer.forward(training=False, grad=False)
            if not module.training:
                self._observer.passed_early(module)
            return
        if root is None:
            self._root = module
            self._leave_others()
            wrapped = [module._modules.get(name) for name in ("_orig_mod", "module")]
            self._observer.network_found("torch", [module, *wrapped])
            self._observer.places.made_at("model", module._modules.get("_orig_mod", module))
        self._forward(module, frame.f_locals["args"], frame.f_locals["kwargs"])

    def _is_root(self, module: Any) -> bool:
        """Whether a module is the root, a copy of it, or compiled from it."""
        return type(module) is type(self._root) or module._modules.get("_orig_mod") is self._root

    def _is_inside(self, module: Any, frame: Any) -> bool:
        """Whether a module like the root is called by another one."""
        if module is self._root:
            return False
        outer = frame.f_back
        for _ in range(_MOST_FRAMES):
            if outer is None:
                return False
            if outer.f_code is self._call:
                caller = outer.f_locals["self"]
                if caller is not module and self._is_root(caller):
                    return True
            outer = outer.f_back
        return False

    def _trains(self, module: Any, grad: bool) -> bool:
        if type(module).__name__ == "OptimizedModule":
            return True
        return grad and module.training and any(each.requires_grad for each in module.parameters())

    def _is_call(self, module: Any, frame: Any) -> bool:
        """Whether a frame asks once in a call of a module: it asks again if it has other hooks."""
        if frame.f_code is self._call:
            return True
        has_others = module._forward_hooks or module._backward_hooks or module._backward_pre_hooks
        return frame.f_back.f_code is self._call and bool(has_others)

    def _forward(self, called: Any, args: Any, more: Any) -> None:
        if args and getattr(args[0], "is_meta", False):  # only shapes are computed
            return
        self._by_hand.look()
        if args and isinstance(args[0], self._tensor):
            tensor = args[0]
        else:
            tensor = _first_tensor(self._tensor, (args, more))
        if tensor is not None and self._observer.steps < FEW:
            self._has_tokens = tensor.ndim == 2 and not tensor.is_floating_point()
            kind = tensor.device.type
            self._autocast = (
                self._torch.get_autocast_dtype(kind)
                if self._torch.is_autocast_enabled(kind)
                else None
            )
        shape: Any = () if tensor is None else tensor.shape
        tokens = shape[0] * shape[1] if self._has_tokens and len(shape) == 2 else None
        grad = self._torch.is_grad_enabled()
        elements = 0 if tensor is None else tensor.numel()
        rows = self._rows(tensor)
        weight: Any = next(called.parameters(), None)
        before = self._weight_state
        # Inference tensors don't count their changes.
        version = 0 if weight is None or weight.is_inference() else weight._version
        self._weight_state = (id(weight), version)
        data = None if tensor is None or tensor._base is None else tensor._base
        data = tensor if data is None else data
        self._observer.forward(
            called.training,
            grad,
            rows,
            tokens,
            elements,
            data,
            begins=called is self._root,
            repeats=self._last_input.is_this_too(tensor),
            moved=before[0] == id(weight) and before[1] != version,
        )

    def _rows(self, tensor: Any) -> int | None:
        """Return the number of examples in an input; None if its shape does not show it.

        A single observation has no dimension of the batch. Layers that take time first may be
        given a batch in either order.
        """
        if tensor is None or tensor.ndim < 2:
            return None
        if self._takes_time_first is None:
            self._takes_time_first = any(
                getattr(each, "batch_first", None) is False for each in self._root.modules()
            )
        return None if self._takes_time_first else int(tensor.shape[0])

    def describe(self) -> dict[str, Any]:
        """Return what the network computes with.

        If no weight was found, most of it is unknown.
        """
        weight = self._first_weight()
        known = {"threads": self._torch.get_num_threads(), "ranks": self._ranks()}
        if weight is None:
            return {**known, **dict.fromkeys(("precision", "device", "device_peak_bytes"))}
        return {
            **known,
            "precision": str(self._autocast or weight.dtype)[len("torch.") :],
            "device": str(weight.device),
            "device_peak_bytes": accelerator.peak_bytes(self._torch, weight.device),
        }

    def device_bytes(self) -> int | None:
        """Return how many bytes are allocated on the device of the network, if that is known."""
        weight = self._first_weight()
        return None if weight is None else accelerator.allocated_bytes(self._torch, weight.device)

    def _ranks(self) -> int:
        """Return the number of processes that train, or have trained, together."""
        distributed = self._torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            self._most_ranks = max(self._most_ranks, distributed.get_world_size())
        return self._most_ranks

    def _first_weight(self) -> Any:
        """Return the first weight of the network, else of its optimiser; None if there is none."""
        if self._root is not None:
            return next(iter(self._root.parameters()), None)
        for group in getattr(self._observer.trainings.leader(), "param_groups", ()):
            for weight in group["params"]:
                return weight
        return None

    def read_losses(self, kept: list[Any]) -> Any:
        """Return the losses of some steps, copied from the device at once."""
        return self._torch.stack(kept).tolist()


def _places(torch: Any, observer: Observer) -> None:
    keep_places(torch.nn.Module, observer)


def _saves(torch: Any, observer: Observer) -> None:
    time_saves(torch, ("save",), observer)


def _steps(_: Any, observer: Observer, by_hand: StepsByHand) -> None:
    optimizer: Any = importlib.import_module("torch.optim.optimizer")
    optimizer.register_optimizer_step_pre_hook(observer.guarded(observer.stepping))

    def stepped(each: Any, *_: Any) -> None:
        observer.stepped(each, "torch")

    optimizer.register_optimizer_step_post_hook(observer.guarded(stepped))
    for name in ("register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"):
        note(optimizer, name, Kind.HOOK)
    keep_places(optimizer.Optimizer, observer)

    def made(_: dict[str, Any]) -> Generator[None, Any, None]:
        by_hand.end()
        yield

    inside(optimizer.Optimizer, "__init__", made, observer)


def _losses(torch: Any, observer: Observer, by_hand: StepsByHand) -> None:
    running: list[Any] = []
    item = torch.Tensor.item

    @observer.guarded
    def keep(loss: Any) -> None:
        by_hand.look()
        by_hand.differentiates(loss)
        if loss.numel() != 1:
            return
        if not loss.is_cpu:
            loss = loss.detach().reshape(())
            observer.loss(loss / _SCALES[0].to(loss.device) if _SCALES else loss)
        else:
            observer.loss(item(loss) / (item(_SCALES[0]) if _SCALES else 1.0))
        if observer.steps < FEW:
            place = users_place(sys._getframe(1))
            if place:
                observer.places.keep_further("backward", place)
            rows = _target_rows(loss)
            if rows:
                observer.compared(rows)

    def differentiates(arguments: dict[str, Any]) -> Generator[None, Any, None]:
        loss = arguments["self"]
        # Tensors of a derived class call it again
        if any(each is loss for each in running):
            return
        keep(loss)
        start = clock()
        running.append(loss)
        try:
            yield
        finally:
            running.pop()
        observer.differentiated(start)
        if observer.step_began:
            observer.stepping()

    inside(torch.Tensor, "backward", differentiates, observer)


def _target_rows(loss: Any) -> int | None:
    """Return the number of rows of what a loss function of PyTorch compares with its target.

    Their shapes alone are asked for: a saved tensor may have to be computed again.
    """
    waiting = [loss.grad_fn]
    for _ in range(_MOST_NODES):
        if not waiting:
            return None
        node = waiting.pop(0)
        if node is None:
            continue
        if node.name().startswith(_LOSSES):
            inputs: list[Any] = [each for each, _ in node.next_functions]
            compared = inputs[0] if inputs else None
            about = getattr(compared, "_input_metadata", None) or [None]
            shape: Any = getattr(about[0], "shape", ())
            return int(shape[0]) if len(shape) else None
        waiting += [each for each, _ in node.next_functions]
    return None


def _scalers(torch: Any, observer: Observer) -> None:
    """Divide losses by the scale of the gradient scaler.

    The steps that it skips are counted.
    """

    def scales(arguments: dict[str, Any]) -> Generator[None, Any, None]:
        yield
        scaler = arguments["self"]
        if scaler._enabled:
            _SCALES[:] = [scaler._scale]

    def steps(arguments: dict[str, Any]) -> Generator[None, Any, None]:
        before = observer.steps
        yield
        if observer.speaks and observer.steps == before and arguments["self"]._enabled:
            observer.skipped()

    inside(torch.amp.GradScaler, "scale", scales, observer)
    inside(torch.amp.GradScaler, "step", steps, observer)


class _Opening(NamedTuple):
    """The beginning of an iteration of a loader.

    Args:
        steps: number of steps before it.
        length: number of batches; None if it is unknown.
        examples: number of examples of a batch, as its sampler knows it; None if it does not.
        last_examples: that of the last batch.
        loader: number of the loader; 0 if it is unknown.
    """

    steps: int = 0
    length: int | None = None
    examples: int | None = None
    last_examples: int | None = None
    loader: int = 0


def _loaders(torch: Any, observer: Observer, by_hand: StepsByHand) -> None:
    module: Any = importlib.import_module("torch.utils.data.dataloader")
    keep_places(module.DataLoader, observer)

    @observer.guarded
    def fetched(iterator: Any, start: float, batch: Any) -> None:
        opening = getattr(iterator, "_trainmark", _Opening())
        is_last = iterator._num_yielded == opening.length
        examples = opening.examples
        if is_last or examples is None or iterator._num_yielded == 1:
            first = _first_tensor(torch.Tensor, batch)
            if first is not None:
                examples = first.size(0) if first.dim() else None
            elif is_last:  # an object of a library, as a batch of graphs is
                examples = opening.last_examples
            # The loader's batches are not those of its sampler.
            if opening.examples is not None and examples != opening.examples:
                iterator._trainmark = opening._replace(examples=None)
        observer.fetched(start, examples, opening.loader)
        if is_last:
            observer.read_out(opening.steps)

    @observer.guarded
    def exhausted(iterator: Any) -> None:
        opening = getattr(iterator, "_trainmark", _Opening(observer.steps))
        observer.exhausted(opening.steps, loader=opening.loader)

    @observer.guarded
    def opened(loader: Any, iterator: Any, start: float) -> None:
        ours = {type(loader.sampler).__module__, type(loader.batch_sampler).__module__} <= _SAMPLERS
        # The length of other loaders is only asked if the user has asked for it, too.
        known = ours or getattr(loader, "_IterableDataset_len_called", None) is not None
        opening = _Opening(observer.steps, loader=observer.number_of(loader))
        if known:
            opening = opening._replace(length=length_of(loader))
        if ours and loader.batch_size:
            rest = (length_of(loader.sampler) or 0) % loader.batch_size
            opening = opening._replace(
                examples=loader.batch_size,
                last_examples=loader.batch_size if loader.drop_last or not rest else rest,
            )
        iterator._trainmark = opening
        observer.opened(loader, start)

    def opens(arguments: dict[str, Any]) -> Generator[None, Any, None]:
        by_hand.look()
        start = clock()
        iterator = yield
        opened(arguments["self"], iterator, start)

    def advances(arguments: dict[str, Any]) -> Generator[None, Any, None]:
        by_hand.look()
        start = clock()
        try:
            batch = yield
        except GeneratorExit:
            exhausted(arguments["self"])
            raise
        fetched(arguments["self"], start, batch)

    inside(module.DataLoader, "__iter__", opens, observer)
    inside(module._BaseDataLoaderIter, "__next__", advances, observer)


def _reads(torch: Any, observer: Observer) -> None:
    time_reads(torch.Tensor, _READS, observer, accelerator.copies(torch))


class _Threads(Settable):
    """PyTorch's number of CPU threads, as long as the script neither sets it nor compiles."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        # This is the real function, whose name is replaced below.
        self._set: Callable[[int], None] = torch.set_num_threads

    def get(self) -> int:
        return int(self._torch.get_num_threads())

    def set(self, number: int) -> None:
        self._set(number)

    def watch(self, observer: Observer) -> None:
        """Notice what fixes the number of threads."""

        def sets(real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
            self.fixed = "the script sets it"
            return real(*args, **more)

        def compiles(_: Any) -> Generator[None, Any, None]:
            # Compiled code is compiled again for another number of threads, and the compiler gives
            # up after a few.
            self.fixed = "the script compiles"
            yield

        around(self._torch, "set_num_threads", sets)
        note(self._torch, "set_num_threads", Kind.SAME_NAME)
        if hasattr(self._torch, "compile"):
            inside(self._torch, "compile", compiles, observer)


def _threads(torch: Any, observer: Observer) -> None:
    threads = _Threads(torch)
    threads.watch(observer)
    observer.threads["torch"] = threads


def _weights_of(optimizer: Any) -> list[Any]:
    return [each for group in optimizer.param_groups for each in group["params"]]


def _first_tensor(kind: Any, value: Any) -> Any:
    """Return the first tensor in nested sequences and mappings; None without one."""
    return next((each for _, each in leaves(value) if isinstance(each, kind)), None)
