"""The interface of a backend: a :class:`Backend` says what it supports, a :class:`Trainer` trains.

Time is read by the worker, only at synchronised edges. So a trainer queues as many steps as it is told and returns
results that may still be on the device; only ``synchronize`` waits for them, and only ``read`` fetches them.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.layout import Layout
from trainmark.data.dataset import Dataset
from trainmark.errors import AbsentDevice, Unsupported
from trainmark.workload.model import Model, Weights
from trainmark.workload.precision import Precision
from trainmark.workload.schedule import Batches
from trainmark.workload.spec import Workload

Style = Literal["idiomatic", "compiled", "fast"]
SplitName = Literal["train", "test"]
Part = Literal["fetch", "input", "copy", "optimizer", "loss"]
"""Parts that a trainer can omit if its backend is :class:`~trainmark.backends.parts.Separable`."""

STYLES: tuple[Style, ...] = ("idiomatic", "compiled", "fast")
"""``idiomatic``: the training loop of the framework's tutorials. ``compiled``: the same loop through the framework's
compiler. ``fast``: the fastest loop that its public API gives. ``examples/recipes`` has each as a short script."""

DEFAULT_STYLES: tuple[Style, ...] = ("idiomatic", "fast")
"""Styles that are compared by default; compiling takes longer than a short training saves."""

KINDS_0_1 = frozenset(
    {
        *("dense", "conv2d", "max-pool", "local-response-norm", "relu", "dropout", "channel-dropout", "flatten"),
        *("log-softmax", "nll", "softmax-cross-entropy", "softmax-then-log", "clipped-softmax-cross-entropy"),
        *("sgd", "adam", "rmsprop"),
    }
)
"""Layers, losses and optimisers of version 0.1. It never grows: a backend names each later kind that it implements."""

EVALUATION_BATCH = 1000
LOSS, L2_LOSS, HITS = range(3)
"""Columns of the results of steps where a trainer keeps them as rows of an array."""


@dataclass(frozen=True)
class Device:
    """One device as the backend reports it: ``cpu``, ``cuda:0``, ``mps``, ..."""

    id: str
    name: str | None
    kind: Literal["cpu", "accelerator"]
    memory_bytes: int | None = None
    precisions: tuple[Precision, ...] = ("fp32",)


def cpu(*precisions: Precision) -> Device:
    """The processor of this machine."""
    return Device("cpu", platform.processor() or platform.machine(), "cpu", None, precisions)


@dataclass(frozen=True)
class Capabilities:
    """What a backend supports in this interpreter.

    Args:
        version: the framework's.
        kinds: the layers, losses and optimisers it implements, each named by its ``kind``; any other is refused.
        packages: versions of what decides speed or arithmetic.
        untested: the framework is newer than any that trainmark's own tests have run on.
        spreads: by what one training spreads over several devices: a process for each, or one that has them all.
        compiles_already: the loop of ``idiomatic`` is compiled, so there is no other style ``compiled``.
    """

    name: str
    version: str
    styles: tuple[Style, ...]
    devices: tuple[Device, ...]
    kinds: frozenset[str]
    packages: dict[str, str] = field(default_factory=dict)
    untested: bool = False
    spreads: Literal["processes", "devices"] | None = None
    compiles_already: bool = False

    def __post_init__(self) -> None:
        """Refuse the form of version 0.1, in which the fifth argument was ``packages``."""
        if not isinstance(self.kinds, frozenset):
            raise TypeError(f"Capabilities(kinds=...) is a {type(self.kinds).__name__}, not a frozenset")


class ResourceOptions(TypedDict, total=False):
    """The fields of :class:`ResourceLimits`, as options of ``trainmark.run``."""

    threads: int | None
    memory_fraction: float | None


@dataclass(frozen=True, kw_only=True)
class ResourceLimits:
    """What a framework may use; options, settings and records have the same fields.

    Args:
        threads: of the CPU; None leaves the framework's own choice.
        memory_fraction: of the device's memory, 0 to 1; None leaves it alone.
    """

    threads: int | None = None
    memory_fraction: float | None = None


def limits_of(holder: object) -> ResourceOptions:
    """The limits that options, settings or a record hold."""
    return cast(ResourceOptions, {each.name: getattr(holder, each.name) for each in fields(ResourceLimits)})


@dataclass(frozen=True)
class Options(ResourceLimits):
    """How to run a workload.

    Args:
        seed: of the framework's own random numbers (dropout, its own shuffle, distortions).
        without: parts of a step that are left out, so that their cost can be told; what is trained then is nothing.
        layout: over which devices the training is spread; None for a training of one, which need not be spreadable.
    """

    style: Style
    device: str
    precision: Precision
    seed: int
    without: frozenset[Part] = frozenset()
    layout: Layout | None = None


@dataclass(frozen=True)
class Job:
    """What :meth:`Backend.trainer` makes a trainer for; a backend may hand the four on as one.

    Args:
        model: of the workload, laid out.
    """

    workload: Workload
    model: Model
    data: Dataset
    options: Options

    @property
    def distorts(self) -> bool:
        """Whether training images are other ones every time."""
        return self.workload.input.distortions is not None


@dataclass(frozen=True)
class EpochPlan:
    """The steps of one epoch.

    Args:
        sizes: examples of each step.
        order: index of every example in the order of use, ``[sum(sizes)]``; None leaves a fresh shuffle to the
            framework, as its own loader does it.
        whole: every step takes the whole training set in stored order, so nothing need be gathered.
    """

    sizes: tuple[int, ...]
    order: NDArray[np.int64] | None
    whole: bool = False

    def drawn(
        self, batches: Batches, examples: int, permutation: Callable[[int], NDArray[np.int64]]
    ) -> NDArray[np.int64] | None:
        """The order of use; if none is given, ``permutation`` draws one for each pass. None if nothing is gathered."""
        if self.whole or self.order is not None:
            return None if self.whole else self.order
        one_pass = sum(batches.sizes(examples))
        passes = -(-sum(self.sizes) // one_pass)
        return np.concatenate([permutation(examples)[:one_pass] for _ in range(passes)])

    def batches(self, order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The examples of each step, in this order of use."""
        return np.split(order, np.cumsum(self.sizes)[:-1])


@dataclass(frozen=True)
class Steps:
    """Results of steps, one value per step, on the host.

    Args:
        losses: mean loss of the batch before its update, L2 terms included, ``[steps]``.
        l2_losses: the L2 part of it, ``[steps]``; None when no layer has one.
        hits: correct predictions of the batch, ``[steps]``; any value where the workload has exact metrics.
    """

    losses: NDArray[np.float64]
    l2_losses: NDArray[np.float64] | None
    hits: NDArray[np.int64]

    @classmethod
    def from_rows(cls, rows: NDArray[np.float64], *, has_l2: bool) -> Steps:
        """From an array ``[steps, 3]`` whose columns are ``LOSS``, ``L2_LOSS`` and ``HITS``."""
        return cls(rows[:, LOSS], rows[:, L2_LOSS] if has_l2 else None, rows[:, HITS].astype(np.int64))


@dataclass(frozen=True)
class Evaluation:
    """Mean loss (without L2) and accuracy over a whole split, without dropout."""

    loss: float
    accuracy: float


class Trainer(Protocol):
    """One network on one device, ready to train. Anything it returns from ``train`` may still be on the device.

    If ``ticks_between_steps`` is true, ``train`` calls ``tick`` between steps and nowhere else. Then a training that
    pauses does so within ``tick``, in the middle of one ``train``; else it calls ``train`` more often.
    """

    def load(self, weights: Weights) -> None:
        """Set these weights, ``float32`` in canonical layout, and start with a new optimiser at step 0."""

    def compile(self, plan: EpochPlan) -> bool:
        """Compile ahead what an epoch like ``plan`` would compile later, without changing weights and optimiser;
        False if there is nothing to compile."""

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Prepare the batches of ``plan``."""

    def train(self, steps: int, tick: Callable[[], None]) -> Any:
        """Queue the next ``steps`` steps of the epoch, calling ``tick`` after each; returns what :meth:`read` takes."""

    def synchronize(self) -> None:
        """Return when all queued work is done."""

    def read(self, results: Any) -> Steps:
        """Fetch the results of :meth:`train`."""

    def evaluate(self, split: SplitName) -> Evaluation:
        """Loss and accuracy on a split, with the averaged weights where the workload keeps an average."""

    def outputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Outputs of the last layer ``[n, classes]`` for stored images ``[n, height, width, channels]``, no dropout,
        with the trained weights and never the averaged ones."""

    def weights(self) -> Weights:
        """The weights as they are now, ``float32`` in canonical layout."""

    def averaged(self) -> Weights:
        """The averaged weights, like :meth:`weights`; the weights themselves if the workload keeps no average."""

    def settings(self) -> dict[str, Any]:
        """The settings that affect speed or arithmetic, as the framework reports them now."""

    def device_peak_bytes(self) -> int | None:
        """Peak memory of the framework on the device; None if it does not report it."""


class Backend(Protocol):
    """A framework adapter. Constructing it imports the framework."""

    def capabilities(self) -> Capabilities:
        """Return what the backend supports here."""

    def trainer(self, workload: Workload, model: Model, data: Dataset, options: Options) -> Trainer:
        """Make a trainer without weights; raises :class:`~trainmark.errors.Unsupported`."""


def is_untested(framework: str, found: str, *, oldest: str, newest: str) -> bool:
    """Whether ``found`` is newer than the newest tested version, compared by as many parts as ``newest`` has.

    Raises:
        Unsupported: it is older than ``oldest``.
    """
    if _parts(found) < _parts(oldest):
        raise Unsupported(f"this {framework} is too old", expected=f"{oldest} or newer", found=found)
    return _parts(found)[: len(_parts(newest))] > _parts(newest)


def _parts(version: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in numbers[0].split(".")) if numbers else ()


def kinds_of(workload: Workload) -> tuple[str, ...]:
    """The ``kind`` of every layer, of the loss and of the optimiser."""
    return (*(layer.kind for layer in workload.model), workload.loss.kind, workload.optimizer.kind)


def require_support(can: Capabilities, workload: Workload, options: Options) -> Device:
    """The device of ``options``, unless the backend can't run this.

    Raises:
        AbsentDevice: the backend does not see the device.
        Unsupported: a layer, loss, optimiser, style or precision it does not have.
    """
    seen = {device.id: device for device in can.devices}
    if options.device not in seen:
        raise AbsentDevice(
            f"{can.name} does not see the device {options.device!r}",
            expected=f"one of {', '.join(seen)}",
            fix="`trainmark list devices` shows what each backend sees.",
        )
    device = seen[options.device]
    for what, value, known in (
        ("the style", options.style, can.styles),
        ("the precision", options.precision, device.precisions),
        *(("the layer, loss or optimiser", kind, tuple(sorted(can.kinds))) for kind in kinds_of(workload)),
    ):
        if value not in known:
            compiles = value == "compiled" and can.compiles_already
            raise Unsupported(
                f"{can.name} on {device.id} does not have {what} {value!r}",
                expected=f"one of {', '.join(known)}",
                fix="Use --style idiomatic, which is compiled already." if compiles else "",
            )
    if options.memory_fraction is not None and device.kind == "cpu":
        raise Unsupported(
            "--memory-fraction has no meaning on a CPU", expected="an accelerator such as cuda:0", found=device.id
        )
    return device
