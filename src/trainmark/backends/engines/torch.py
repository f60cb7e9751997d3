"""PyTorch's devices and settings, for PyTorch and for Keras on PyTorch.

All that depends on the kind of a GPU is here: elsewhere a device is a ``torch.device``. Only
NVIDIA's GPUs were tested. AMD's (ROCm, which reports itself as ``cuda``), Intel's (``xpu``) and
Apple's (``mps``) use the same code, untested.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch

from trainmark.backends.base import Device, Options
from trainmark.backends.examination import Examination, first_line
from trainmark.backends.inductor import share_cache
from trainmark.workload.precision import Precision

OLDEST = "2.5"
"""Oldest tested PyTorch. Earlier ones lack fused optimisers on the CPU, ``torch.amp.GradScaler`` or
an RMSprop that can be captured."""
NEWEST = "2.13"
"""Newest tested PyTorch."""

Capability = tuple[int, int]
"""Compute capability of a CUDA device, such as ``(9, 0)``."""
Precisions = Callable[[str, Capability | None], tuple[Precision, ...]]
"""Returns the precisions of a kind of device, such as ``cuda``; with the compute capability of a
CUDA device."""

_ACCELERATORS = ("cuda", "xpu", "mps")
"""Kinds of accelerators that trainmark can train on; a build of PyTorch has at most one."""
_COLLECTIVES = {"cuda": "nccl", "xpu": "xccl"}
"""PyTorch's library for collectives of several devices of a kind; ``gloo`` for any other kind."""


class Graph(Protocol):
    """A captured step."""

    def replay(self) -> None:
        """Queue the step again."""


def packages() -> dict[str, str]:
    """Return the versions of PyTorch and of what it was built with."""
    found = {"torch": torch.__version__}
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
        found["cudnn"] = str(torch.backends.cudnn.version())
    if torch.version.hip:
        found["rocm"] = torch.version.hip
    return found


def examine() -> Examination:
    """Return what PyTorch was built for, and why it sees no GPU if it was built for one."""
    built_for = f"ROCm {torch.version.hip}" if torch.version.hip else None
    if torch.version.cuda:
        built_for = f"CUDA {torch.version.cuda}"
    sees = torch.cuda.is_available()
    blind = None
    if built_for and not sees:
        try:
            torch.cuda.init()
        except Exception as error:  # noqa: BLE001  (several kinds of exception give the reason)
            blind = first_line(error)
    return Examination(built_for, tuple(torch.cuda.get_arch_list()) if sees else None, blind)


def accelerators(precisions: Precisions) -> list[Device]:
    """Return every accelerator that PyTorch sees and that answers.

    Args:
        precisions: returns the precisions of a kind of device.
    """
    kind = _kind()
    return [] if kind is None else list(_of_kind(kind, precisions))


def _kind() -> str | None:
    """Return the kind of accelerator that this PyTorch can use."""
    if hasattr(torch, "accelerator"):  # since 2.6
        found = torch.accelerator.current_accelerator()
        return found.type if found is not None and found.type in _ACCELERATORS else None
    return next(
        (kind for kind in _ACCELERATORS if torch.get_device_module(kind).is_available()), None
    )


def _of_kind(kind: str, precisions: Precisions) -> Iterator[Device]:
    if kind == "mps":
        if torch.backends.mps.is_available():
            yield Device(
                "mps", "Apple GPU", "accelerator", None, precisions(kind, None), tested=False
            )
        return
    module = torch.get_device_module(kind)
    for index in range(module.device_count()):
        try:
            found = module.get_device_properties(index)
        # A driver without a working device: the other devices still work
        except Exception as error:  # noqa: BLE001
            problem = (
                f"{kind}:{index} is left out: {first_line(error)}. `trainmark doctor` checks it."
            )
            warnings.warn(problem, RuntimeWarning, stacklevel=2)
            continue
        capability = (found.major, found.minor) if kind == "cuda" else None
        able = precisions(kind, capability)
        tested = kind == "cuda" and torch.version.hip is None
        yield Device(
            f"{kind}:{index}", found.name, "accelerator", found.total_memory, able, tested=tested
        )


def prepare(options: Options, *, tf32: bool) -> torch.device:
    """Set threads, arithmetic, share of memory and cache, and return the device.

    The device becomes the current one.

    ``fp32`` is IEEE single precision: TF32 and reduced-precision sums are off unless requested by
    name.
    """
    share_cache()  # early, since torch._dynamo keeps the folder that it finds
    if options.threads is not None:
        set_threads(options.threads)
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    device = torch.device(options.device)
    make_current(device)
    if options.memory_fraction is not None and device.type != "cpu":
        _limit_memory(device, options.memory_fraction)
    return device


def set_threads(number: int) -> None:
    """Compute with this many CPU threads from now on."""
    torch.set_num_threads(number)


def make_current(device: torch.device) -> None:
    """Make this the current device of its kind.

    Streams and graphs are created on the current device.
    """
    if device.index is not None and device.type != "cpu":
        torch.get_device_module(device).set_device(device)


def _limit_memory(device: torch.device, fraction: float) -> None:
    limit = torch.get_device_module(device).set_per_process_memory_fraction
    if device.index is None:  # MPS has one device
        limit(fraction)
    else:
        limit(fraction, device)


def local_device(kind: str, index: int) -> torch.device:
    """Return the device of one rank of several on this machine.

    Each rank takes a separate accelerator.
    """
    return torch.device(kind, index) if kind in _COLLECTIVES else torch.device(kind)


def collectives(device: torch.device) -> str:
    """Return the name of PyTorch's library for collectives between devices of this kind."""
    return _COLLECTIVES.get(device.type, "gloo")


def indices(device: torch.device) -> list[int] | None:
    """Return the device's number as a list, as PyTorch's distributed functions expect it.

    The result is None for a CPU.
    """
    return None if device.index is None or device.type == "cpu" else [device.index]


def synchronize(device: torch.device) -> None:
    """Wait for the device; the CPU computes synchronously."""
    if device.type == "cpu":
        return
    module = torch.get_device_module(device)
    if device.index is None:  # MPS has one device
        module.synchronize()
    else:
        module.synchronize(device)


def random_states(device: torch.device) -> list[torch.Tensor]:
    """Return the states of the random number generators.

    They are that of the CPU and, if the device isn't the CPU, that of the device.
    """
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        module = torch.get_device_module(device)
        states.append(module.get_rng_state(*_index_of(device)))
    return states


def set_random_states(device: torch.device, states: list[torch.Tensor]) -> None:
    """Set the states that :func:`random_states` returned."""
    torch.set_rng_state(states[0])
    if device.type != "cpu":
        module = torch.get_device_module(device)
        module.set_rng_state(states[1], *_index_of(device))


def _index_of(device: torch.device) -> tuple[torch.device, ...]:
    """Return the device as an argument.

    It is empty for MPS, which has one device and whose functions take no argument.
    """
    return () if device.index is None else (device,)


@contextlib.contextmanager
def random_state_kept(device: torch.device) -> Iterator[None]:
    """Restore the states of the random number generators afterwards."""
    before = random_states(device)
    try:
        yield
    finally:
        set_random_states(device, before)


def captures(device: torch.device) -> bool:
    """Whether a step can be captured in a graph on this device."""
    kind: str = device.type
    return kind == "cuda"


@contextlib.contextmanager
def side_stream(device: torch.device) -> Iterator[None]:
    """Queue work on a stream other than the current one.

    PyTorch requires this for the steps before a capture.
    """
    if device.type != "cuda":
        yield
        return
    current = torch.cuda.current_stream(device)
    aside = torch.cuda.Stream(device)
    aside.wait_stream(current)
    with torch.cuda.stream(aside):
        yield
    current.wait_stream(aside)


def capture(step: Callable[[], None], device: torch.device) -> Graph:
    """Capture ``step`` in a CUDA graph.

    Random numbers are new in each replay: PyTorch's generator keeps its offset on the device while
    it is captured, and ``replay`` advances it by what the step draws.
    """
    generator = torch.cuda.default_generators[device.index or 0]
    spare = generator.clone_state()
    graph: Graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            step()
    except Exception:
        # A failed capture can leave the generator in the state "capturing", in which it can't draw
        # outside a capture.
        generator.graphsafe_set_state(spare)
        raise
    return graph


def settings() -> dict[str, Any]:
    """Return the settings as PyTorch reports them now."""
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
        "threads": torch.get_num_threads(),
    }


def peak_bytes(device: torch.device) -> int | None:
    """Return the peak of the memory that PyTorch allocated on a device.

    The result is None if PyTorch doesn't count it there.
    """
    if device.type == "cpu":
        return None
    read = getattr(torch.get_device_module(device), "max_memory_allocated", None)  # MPS has none
    return None if read is None else int(read(device))
