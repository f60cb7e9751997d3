"""What is observed of PyTorch, and of what is built on it: Lightning, Accelerate, Transformers."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

from . import accelerator
from .best_threads import Settable
from .observer import FEW, Observer, clock
from .patch import around, keep_places, leaves, length_of, time_reads, time_saves

_READS = ("item", "tolist", "cpu", "numpy", "__float__", "__int__", "__bool__", "__format__")
"""Methods of a tensor that wait for its value."""
_SAMPLERS = {"torch.utils.data.sampler", "torch.utils.data.distributed", "builtins"}
"""Modules of PyTorch's own samplers. Asking a user's sampler for its length could change what it
draws."""
_SCALES: list[Any] = []
"""The scale of the gradient scaler that was used last."""


def install(torch: Any, observer: Observer) -> None:
    """Observe the trainings of this process."""
    network = _Network(torch, observer)
    observer.describe["torch"] = network.describe
    observer.read_losses["torch"] = network.read_losses
    patches: dict[str, Callable[[Any, Observer], object]] = {
        "optimizer steps": _steps,
        "Tensor.backward": _losses,
        "GradScaler": _scalers,
        "DataLoader": _loaders,
        "module places": _places,
        "tensor reads": _reads,
        "threads": _threads,
        "torch.save": _saves,
    }
    observer.attempt("forward", network.find)
    for name, patch in patches.items():
        observer.attempt(name, functools.partial(patch, torch, observer))


class _Network:
    """The outermost module that is trained."""

    def __init__(self, torch: Any, observer: Observer) -> None:
        self._torch = torch
        self._observer = observer
        self._root: Any = None
        self._search: Any = None
        self._hook = -1
        self._autocast: Any = None
        self._tensor = torch.Tensor
        self._has_tokens = False

    def find(self) -> None:
        """Take the first module that is called to train.

        The global hook is removed before that module calls others: a compiler would see it in each
        of them.
        """
        torch = self._torch
        module = self._torch.nn.modules.module

        @self._observer.guarded
        def called(called: Any, args: Any) -> None:
            compiled = type(called).__name__ == "OptimizedModule"
            trains = torch.is_grad_enabled() and called.training
            if compiled or (trains and any(weight.requires_grad for weight in called.parameters())):
                self._search.remove()
                hook = called.register_forward_pre_hook(self._calls(), with_kwargs=True)
                self._root = called
                self._hook = hook.id
                self._observer.made_at("model", getattr(called, "_orig_mod", called))
                self._forward(called, args, {})
            elif not trains:
                self._observer.forward(training=False, grad=False)

        self._search = module.register_module_forward_pre_hook(called)

        def compiles(real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
            _restore_reads(torch)
            if not (args and isinstance(args[0], torch.nn.Module)):
                self._search.remove()  # a compiled function would see the hook in all modules
            return real(*args, **more)

        around(torch, "compile", compiles)
        for owner, name in (("jit", "script"), ("export", "export"), ("onnx", "export")):
            if hasattr(torch, owner):
                around(getattr(torch, owner), name, self._without_hook)
        self._keep_out_of_files(torch.nn.Module)

    def _without_hook(self, real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
        """Take the hook off while something looks into the module."""
        modules = args[0].modules() if args and isinstance(args[0], self._torch.nn.Module) else ()
        ours = [
            each._forward_pre_hooks for each in modules if self._hook in each._forward_pre_hooks
        ]
        taken = [hooks.pop(self._hook) for hooks in ours]
        try:
            return real(*args, **more)
        finally:
            for hooks, hook in zip(ours, taken):  # noqa: B905  (Python 3.8)
                hooks[self._hook] = hook

    def _keep_out_of_files(self, module: Any) -> None:
        """Leave the hook out of modules that are saved whole; copies in memory keep it."""

        def state(network: Any) -> dict[str, Any]:
            found = dict(network.__dict__)
            of_copy = sys._getframe(1).f_globals.get("__name__") == "copy"
            if self._hook in found.get("_forward_pre_hooks", ()) and not of_copy:
                for name in ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"):
                    found[name] = type(found[name])(
                        each for each in found[name].items() if each[0] != self._hook
                    )
            return found

        module.__getstate__ = state

    def _calls(self) -> Callable[..., None]:
        """Return the hook; it is quick, since it runs in each step."""
        observer = self._observer
        grad = self._torch.is_grad_enabled
        forward = self._observer.guarded(self._forward)

        def calls(called: Any, args: Any, more: Any) -> None:
            if self._has_tokens or not (observer.is_steady and called.training and grad()):
                forward(called, args, more)

        calls._torchdynamo_disable = True  # type: ignore[attr-defined]
        return calls

    def _forward(self, called: Any, args: Any, more: Any) -> None:
        if args and getattr(args[0], "is_meta", False):  # only shapes are computed
            return
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
        self._observer.forward(called.training, grad, shape[0] if shape else None, tokens)

    def describe(self) -> dict[str, Any]:
        """Return what the network computes with.

        If no weight was found, most of it is unknown.
        """
        weight = self._first_weight()
        threads = self._torch.get_num_threads()
        if weight is None:
            unknown = dict.fromkeys(("precision", "device", "device_peak_bytes"))
            return {"threads": threads, **unknown}
        return {
            "threads": threads,
            "precision": str(self._autocast or weight.dtype)[len("torch.") :],
            "device": str(weight.device),
            "device_peak_bytes": accelerator.peak_bytes(self._torch, weight.device),
        }

    def _first_weight(self) -> Any:
        """Return the first weight of the network, else of its optimiser; None if there is none."""
        if self._root is not None:
            return next(iter(self._root.parameters()), None)
        for group in getattr(self._observer.leader(), "param_groups", ()):
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


def _steps(_: Any, observer: Observer) -> None:
    optimizer: Any = importlib.import_module("torch.optim.optimizer")
    optimizer.register_optimizer_step_pre_hook(observer.guarded(observer.stepping))

    def stepped(each: Any, *_: Any) -> None:
        observer.stepped(each, "torch")

    optimizer.register_optimizer_step_post_hook(observer.guarded(stepped))
    keep_places(optimizer.Optimizer, observer)


def _losses(torch: Any, observer: Observer) -> None:
    restarts = observer.guarded(observer.stepping)
    item = torch.Tensor.item

    @observer.guarded
    def keep(loss: Any) -> None:
        if loss.numel() != 1:
            return
        if not loss.is_cpu:
            loss = loss.detach().reshape(())
            observer.loss(loss / _SCALES[0].to(loss.device) if _SCALES else loss)
        else:
            observer.loss(item(loss) / (item(_SCALES[0]) if _SCALES else 1.0))
        if "backward" not in observer.places:
            observer.place("backward", sys._getframe(1))

    backward = torch.Tensor.backward

    @functools.wraps(backward)
    def differentiated(loss: Any, *args: Any, **more: Any) -> Any:
        keep(loss)
        found = backward(loss, *args, **more)
        if observer.step_began:
            restarts()
        return found

    torch.Tensor.backward = differentiated


def _scalers(torch: Any, observer: Observer) -> None:
    """Divide losses by the scale of the gradient scaler.

    The steps that it skips are counted.
    """

    def scaled(real: Callable[..., Any], scaler: Any, outputs: Any) -> Any:
        found = real(scaler, outputs)
        if scaler._enabled:
            _SCALES[:] = [scaler._scale]
        return found

    def stepped(real: Callable[..., Any], scaler: Any, /, *args: Any, **more: Any) -> Any:
        before = observer.steps
        found = real(scaler, *args, **more)
        if observer.speaks and observer.steps == before and scaler._enabled:
            observer.skipped()
        return found

    around(torch.amp.GradScaler, "scale", scaled)
    around(torch.amp.GradScaler, "step", stepped)


def _loaders(torch: Any, observer: Observer) -> None:
    module: Any = importlib.import_module("torch.utils.data.dataloader")
    keep_places(module.DataLoader, observer)
    advance = module._BaseDataLoaderIter.__next__

    @observer.guarded
    def fetched(iterator: Any, start: float, batch: Any) -> None:
        steps_before, length, examples = getattr(iterator, "_trainmark", (0, 0, None))
        is_last = iterator._num_yielded == length
        if is_last or examples is None or iterator._num_yielded == 1:
            first = _first_tensor(torch.Tensor, batch)
            expected = examples
            examples = first.size(0) if first is not None and first.dim() else None
            # The loader's batches are not those of its sampler.
            if expected is not None and examples != expected:
                iterator._trainmark = steps_before, length, None
        observer.fetched(start, examples)
        if is_last:
            observer.read_out(steps_before)

    @observer.guarded
    def exhausted(iterator: Any) -> None:
        observer.exhausted(getattr(iterator, "_trainmark", (observer.steps,))[0])

    @observer.guarded
    def opened(loader: Any, iterator: Any, start: float) -> None:
        ours = {type(loader.sampler).__module__, type(loader.batch_sampler).__module__} <= _SAMPLERS
        # The length of other loaders is only asked if the user has asked for it, too.
        known = ours or getattr(loader, "_IterableDataset_len_called", None) is not None
        iterator._trainmark = (
            observer.steps,
            length_of(loader) if known else None,
            loader.batch_size if ours else None,
        )
        observer.opened(loader, start)

    def opens(real: Callable[..., Any], loader: Any) -> Any:
        start = clock()
        found = real(loader)
        opened(loader, found, start)
        return found

    @functools.wraps(advance)
    def advances(iterator: Any) -> Any:
        start = clock()
        try:
            batch = advance(iterator)
        except StopIteration:
            exhausted(iterator)
            raise
        fetched(iterator, start, batch)
        return batch

    around(module.DataLoader, "__iter__", opens)
    module._BaseDataLoaderIter.__next__ = advances


def _reads(torch: Any, observer: Observer) -> None:
    time_reads(torch.Tensor, _READS, observer, accelerator.copies(torch))


def _restore_reads(torch: Any) -> None:
    """Give tensors their own methods back before a function is compiled.

    The compiler would look into ours.
    """
    for name in (*_READS, *accelerator.COPIES):
        read = torch.Tensor.__dict__.get(name)
        if hasattr(read, "__wrapped__") and hasattr(read, "_trainmark"):
            setattr(torch.Tensor, name, read.__wrapped__)


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

    def watch(self) -> None:
        """Notice what fixes the number of threads."""

        def sets(real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
            self.fixed = "the script sets it"
            return real(*args, **more)

        def compiles(real: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
            # Compiled code is compiled again for another number of threads, and the compiler gives
            # up after a few.
            self.fixed = "the script compiles"
            return real(*args, **more)

        around(self._torch, "set_num_threads", sets)
        if hasattr(self._torch, "compile"):
            around(self._torch, "compile", compiles)


def _threads(torch: Any, observer: Observer) -> None:
    threads = _Threads(torch)
    threads.watch()
    observer.threads["torch"] = threads


def _first_tensor(kind: Any, value: Any) -> Any:
    """Return the first tensor in nested sequences and mappings; None without one."""
    return next((each for _, each in leaves(value) if isinstance(each, kind)), None)
