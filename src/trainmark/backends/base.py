"""The interface of a backend: a :class:`Backend` says what it supports, a :class:`Trainer` trains.

The worker reads the time, only at synchronised edges. So a trainer queues the requested number of
steps and returns results that may still be on the device; only ``synchronize`` waits for them, and
only ``read`` fetches them.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from trainmark import units
from trainmark.backends.layout import Layout
from trainmark.data.dataset import Dataset
from trainmark.errors import AbsentDevice, Unsupported
from trainmark.workload import layers
from trainmark.workload.losses import sums
from trainmark.workload.model import Model, Weights, lay_out
from trainmark.workload.precision import PRECISIONS, Precision
from trainmark.workload.schedule import Batches
from trainmark.workload.spec import Workload
from trainmark.workload.tokens import Tokens
from trainmark.workload.traffic import held

Style = Literal["idiomatic", "compiled", "fast"]
SplitName = Literal["train", "test"]
"""Names of the parts of a dataset: what is trained on, and what is only evaluated."""
StepPart = Literal["fetch", "input", "copy", "optimizer", "loss"]
"""Parts that a trainer can omit if its backend is :class:`~trainmark.backends.parts.Separable`."""

STYLES: tuple[Style, ...] = ("idiomatic", "compiled", "fast")
"""``idiomatic``: the training loop of the framework's tutorials. ``compiled``: the same loop
through the framework's compiler. ``fast``: the fastest loop of its public API. ``examples/recipes``
has each as a short script."""

DEFAULT_STYLES: tuple[Style, ...] = ("idiomatic", "fast")
"""Styles that are compared by default; compiling takes longer than a short training saves."""


def no_tick() -> None:
    """Count no step: a tick for steps without progress, such as those of a trial."""


COMMON_KINDS = frozenset(
    {
        # Layers.
        "attention",
        "average-pool",
        "batch-norm",
        "channel-dropout",
        "conv2d",
        "dense",
        "dropout",
        "flatten",
        "gelu",
        "global-average-pool",
        "layer-norm",
        "local-response-norm",
        "max-pool",
        "position-embedding",
        "relu",
        "repeat",
        "residual",
        "scale",
        "tied-head",
        "token-embedding",
        # Losses.
        "clipped-softmax-cross-entropy",
        "log-softmax",
        "nll",
        "softmax-cross-entropy",
        "softmax-then-log",
        # Optimisers.
        "adam",
        "adamw",
        "rmsprop",
        "sgd",
        # Options of layers, losses, optimisers and batches.
        "augmentation",
        "channel-standardisation",
        "clipping",
        "label-smoothing",
        "learning-rate-schedule",
        "nesterov",
        "no-bias",
        "padding-by-number",
        "sequences",
        "strided-convolution",
        "sum",
        "weight-groups",
    }
)
"""Kinds of layers, losses, optimisers and options that all built-in backends implement.

A new kind is added here once all of them have it; until then, each backend that has it names it."""

LOSS, L2_LOSS, HITS = range(3)
"""Columns of the results of steps where a trainer keeps them as rows of an array."""


@dataclass(frozen=True)
class Device:
    """One device as the backend reports it.

    Args:
        id: ``cpu``, ``cuda:0``, ``mps``, ...
        name: name of the model; None if unknown.
        kind: the machine's processor, or an accelerator such as a GPU.
        memory_bytes: size of the device's memory, in bytes; None if not reported.
        precisions: precisions in which the backend trains on it.
        tested: whether trainmark has been tested on hardware of this kind.
    """

    id: str
    name: str | None
    kind: Literal["cpu", "accelerator"]
    memory_bytes: int | None = None
    precisions: tuple[Precision, ...] = ("fp32",)
    tested: bool = True


def cpu(*precisions: Precision) -> Device:
    """Describe the processor of this machine.

    Args:
        precisions: precisions in which the backend trains on it.

    Returns:
        The device ``cpu``.
    """
    return Device("cpu", platform.processor() or platform.machine(), "cpu", None, precisions)


def is_numbered(device: str) -> bool:
    """Check whether a device is one of several accelerators of its kind.

    Args:
        device: id of the device.

    Returns:
        True for ``cuda:0``, False for ``cpu`` and ``mps``.
    """
    return device.partition(":")[2].isdecimal()


def device_of_rank(device: str, local_rank: int) -> str:
    """Name the device of one rank: each rank of a machine has a separate accelerator.

    Args:
        device: id of the first rank's device.
        local_rank: number of the rank among those of its machine.

    Returns:
        Such as ``cuda:1`` for rank 1 of ``cuda:0``; the device itself if there is only one of its
        kind.
    """
    return f"{device.partition(':')[0]}:{local_rank}" if is_numbered(device) else device


@dataclass(frozen=True)
class Capabilities:
    """What a backend supports in this interpreter.

    Args:
        name: name of the backend, as it is registered.
        version: version of the framework.
        styles: the styles it has.
        devices: the devices it sees.
        kinds: the layers, losses and optimisers it implements, each named by its ``kind``; any
            other is refused.
        packages: versions of the packages that decide speed or arithmetic, by name.
        untested: whether the framework is newer than any that trainmark's own tests have run on.
        spreads: how one training spreads over several devices: one process for each, or one process
            that uses all; None if it can't.
        compiles_already: whether the loop of ``idiomatic`` is compiled, so there is no other style
            ``compiled``.
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
        """Check what a plug-in may get wrong.

        Raises:
            TypeError: ``kinds`` is not a frozenset.
        """
        if not isinstance(self.kinds, frozenset):
            raise TypeError(
                f"Capabilities(kinds=...) is a {type(self.kinds).__name__}, not a frozenset"
            )


class ResourceOptions(TypedDict, total=False):
    """The fields of :class:`ResourceLimits`, as options of ``trainmark.run``.

    Attributes:
        threads: CPU threads; None leaves the framework's own choice.
        memory_fraction: largest fraction of the device's memory to use, 0 to 1; None leaves it
            alone.
    """

    threads: int | None
    memory_fraction: float | None


@dataclass(frozen=True, kw_only=True)
class ResourceLimits:
    """Resources that a framework may use; options, settings and records have the same fields.

    Args:
        threads: CPU threads; None leaves the framework's own choice.
        memory_fraction: largest fraction of the device's memory to use, 0 to 1; None leaves it
            alone.
    """

    threads: int | None = None
    memory_fraction: float | None = None


def resource_limits_of(holder: object) -> ResourceOptions:
    """Collect the limits that options, settings or a record hold.

    Args:
        holder: an object with the fields of :class:`ResourceLimits`.

    Returns:
        The limits by name.
    """
    return cast(
        ResourceOptions, {each.name: getattr(holder, each.name) for each in fields(ResourceLimits)}
    )


@dataclass(frozen=True)
class Options(ResourceLimits):
    """How to run a workload.

    Args:
        style: which of the backend's training loops to use.
        device: id of the device.
        precision: precision of the arithmetic.
        seed: seed of the framework's own random numbers (dropout, its own shuffle, distortions).
        without: parts of a step to omit, to measure what they cost; the result is not a valid
            training.
        layout: how the training is spread over devices; None for an ordinary training on one
            device.
        keeps_gradients: whether to keep the gradients of the last step, for
            :mod:`trainmark.backends.stepwise`.
    """

    style: Style
    device: str
    precision: Precision
    seed: int
    without: frozenset[StepPart] = frozenset()
    layout: Layout | None = None
    keeps_gradients: bool = False


@dataclass(frozen=True)
class Job:
    """The arguments of :meth:`Backend.trainer`, for backends that pass them on as one.

    Args:
        workload: the workload to train.
        model: its network, with the shapes of all layers.
        data: its dataset.
        options: how to run it.
    """

    workload: Workload
    model: Model
    data: Dataset
    options: Options

    @property
    def distorts(self) -> bool:
        """Whether training images are distorted at random, anew each time they are used."""
        return self.workload.input.distortions is not None


@dataclass(frozen=True)
class EpochPlan:
    """The steps of one epoch.

    Args:
        sizes: number of examples of each step.
        order: indices of the examples in order of use, ``[sum(sizes)]``; None leaves a fresh
            shuffle to the framework, as its own loader does it.
        whole: whether every step takes the whole training set in stored order, so that nothing has
            to be gathered.
        augmented: how to augment each example, ``[sum(sizes), 5]``, as
            :func:`trainmark.workload.pixels.draw_augmentation` draws it; None for not at all.
    """

    sizes: tuple[int, ...]
    order: NDArray[np.int64] | None
    whole: bool = False
    augmented: NDArray[np.int64] | None = None

    def drawn(
        self, batches: Batches, examples: int, permutation: Callable[[int], NDArray[np.int64]]
    ) -> NDArray[np.int64] | None:
        """Return the order of use; if none is given, draw one for each pass.

        Args:
            batches: how a pass over the training set is cut into batches.
            examples: size of the training set.
            permutation: draws a random order of this many examples, ``[examples]``.

        Returns:
            Indices of the examples in order of use, at least ``sum(sizes)``; None if nothing is
            gathered.
        """
        if self.whole or self.order is not None:
            return None if self.whole else self.order
        one_pass = sum(batches.sizes(examples))
        passes = -(-sum(self.sizes) // one_pass)
        return np.concatenate([permutation(examples)[:one_pass] for _ in range(passes)])

    def batches(self, order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Cut an order of use into batches.

        Args:
            order: indices of the examples in order of use, ``[sum(sizes)]``.

        Returns:
            The indices of each step's examples.
        """
        return np.split(order, np.cumsum(self.sizes)[:-1])


@dataclass(frozen=True)
class Steps:
    """Results of steps, one value per step, on the host.

    Args:
        losses: mean loss of the batch before its update, L2 terms included, ``[steps]``.
        l2_losses: the L2 part of it, ``[steps]``; None if no layer has one.
        hits: correct predictions of the batch, for a text of its tokens, ``[steps]``; any value
            where the workload has exact metrics.
    """

    losses: NDArray[np.float64]
    l2_losses: NDArray[np.float64] | None
    hits: NDArray[np.int64]

    @classmethod
    def from_rows(cls, rows: NDArray[np.float64], *, has_l2: bool) -> Steps:
        """Convert an array with one row per step.

        Args:
            rows: ``[steps, 3]``, with the columns ``LOSS``, ``L2_LOSS`` and ``HITS``.
            has_l2: whether any layer has an L2 term; without it, that column is ignored.

        Returns:
            The results.
        """
        return cls(
            rows[:, LOSS], rows[:, L2_LOSS] if has_l2 else None, rows[:, HITS].astype(np.int64)
        )


@dataclass(frozen=True)
class Evaluation:
    """Result of evaluating a whole split, without dropout.

    Args:
        loss: mean loss per example, without L2 terms.
        accuracy: share of correct predictions, of tokens for a text, 0 to 1.
    """

    loss: float
    accuracy: float


class Trainer(Protocol):
    """One network on one device, ready to train.

    If a trainer has a true attribute ``ticks_between_steps``, ``train`` calls ``tick`` between
    steps and nowhere else. A training that pauses then does so within ``tick``, in the middle of
    one ``train``; otherwise ``train`` is called more often.
    """

    def load(self, weights: Weights) -> None:
        """Copy these weights into the network, and start with a new optimiser at step 0.

        Args:
            weights: arrays by name, ``float32`` in canonical layout.
        """

    def compile(self, plan: EpochPlan) -> bool:
        """Compile ahead of time what an epoch like ``plan`` would compile later.

        Weights and optimiser do not change.

        Args:
            plan: an epoch with the batch sizes of the training.

        Returns:
            False if there is nothing to compile.
        """

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Prepare the batches of an epoch.

        Args:
            plan: the steps of the epoch.
        """

    def train(self, steps: int, tick: Callable[[], None]) -> Any:
        """Queue the next steps of the epoch.

        Args:
            steps: number of steps.
            tick: to be called after each step.

        Returns:
            Results for :meth:`read`, which may still be on the device.
        """

    def synchronize(self) -> None:
        """Wait until all queued work is done."""

    def read(self, results: Any) -> Steps:
        """Fetch results from the device.

        Args:
            results: results of one call of :meth:`train`.

        Returns:
            The results on the host.
        """

    def evaluate(self, split: SplitName, examples: NDArray[np.int64] | None = None) -> Evaluation:
        """Evaluate a split, with the averaged weights if the workload keeps an average.

        Args:
            split: which split of the dataset.
            examples: indices of the examples to evaluate; only given if the workload evaluates
                samples. None is all.

        Returns:
            Loss and accuracy.
        """

    def outputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Compute the outputs of the last layer without dropout.

        It uses the trained weights and never the averaged ones.

        Args:
            images: images as the dataset stores them, ``[n, height, width, channels]``.

        Returns:
            The outputs, ``[n, classes]``.
        """

    def weights(self) -> Weights:
        """Copy the weights to the host.

        Returns:
            Arrays by name, ``float32`` in canonical layout, which further training does not change.
        """

    def averaged(self) -> Weights:
        """Copy the averaged weights to the host.

        Returns:
            Arrays as from :meth:`weights`; the weights themselves if the workload keeps no average.
        """

    def settings(self) -> dict[str, Any]:
        """Read the settings that affect speed or arithmetic, as the framework reports them now.

        Returns:
            Settings by name; the values can be written as JSON.
        """

    def device_peak_bytes(self) -> int | None:
        """Read how much memory of the device the framework has used at most.

        Returns:
            The peak in bytes; None if the framework does not report it.
        """


class Backend(Protocol):
    """A framework adapter. Constructing it imports the framework."""

    def capabilities(self) -> Capabilities:
        """Find out what the backend supports in this interpreter and on this machine.

        Returns:
            Its version, styles, devices, layers, losses and optimisers.
        """

    def trainer(self, workload: Workload, model: Model, data: Dataset, options: Options) -> Trainer:
        """Make a trainer; :meth:`Trainer.load` gives it weights.

        :func:`require_support` makes the usual checks.

        Args:
            workload: the workload to train.
            model: its network, with the shapes of all layers.
            data: its dataset.
            options: how to run it.

        Returns:
            The trainer.

        Raises:
            AbsentDevice: the backend does not see the device.
            Unsupported: the backend can't do what the workload or the options need.
        """


def is_untested(framework: str, found: str, *, oldest: str, newest: str) -> bool:
    """Check whether a framework is newer than the newest tested version.

    Args:
        framework: name of the framework, for the error.
        found: version of the installed framework.
        oldest: oldest supported version.
        newest: newest tested version; only as many parts as it has are compared, so 2.7.1 is not
            newer than 2.7.

    Returns:
        Whether ``found`` is newer.

    Raises:
        Unsupported: it is older than ``oldest``.
    """
    if _parts(found) < _parts(oldest):
        raise Unsupported(
            f"this {framework} is too old", expected=f"{oldest} or newer", found=found
        )
    return _parts(found)[: len(_parts(newest))] > _parts(newest)


def _parts(version: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in numbers[0].split(".")) if numbers else ()


def kinds_of(workload: Workload) -> tuple[str, ...]:
    """List what a backend must implement for a workload.

    Args:
        workload: the workload.

    Returns:
        The ``kind`` of every layer, of the loss and of the optimiser, and the options of version
        0.2 that it uses.
    """
    every_layer = tuple(layers.every(workload.model))
    spec = workload.input
    loss = workload.loss
    optimizer = workload.optimizer
    standardize = None if isinstance(spec, Tokens) else spec.standardize
    convolutions = [layer for layer in every_layer if isinstance(layer, layers.Conv2D)]
    paddings = [
        layer.padding for layer in every_layer if isinstance(layer, (layers.Conv2D, layers.MaxPool))
    ]
    newer = {
        "sequences": workload.is_text,
        "augmentation": spec.augment is not None,
        "channel-standardisation": standardize is not None and isinstance(standardize.mean, tuple),
        "strided-convolution": any(layer.stride > 1 for layer in convolutions),
        "padding-by-number": any(isinstance(each, int) for each in paddings),
        "no-bias": any(getattr(layer, "bias", None) == "none" for layer in every_layer),
        "label-smoothing": getattr(loss, "smoothing", 0) > 0,
        "sum": sums(loss),
        "nesterov": getattr(optimizer, "nesterov", False),
        "weight-groups": bool(getattr(optimizer, "groups", ())),
        "clipping": optimizer.clip_norm is not None,
        "learning-rate-schedule": optimizer.lr_schedule is not None,
    }
    kinds = (*(layer.kind for layer in every_layer), loss.kind, optimizer.kind)
    return (*kinds, *(name for name, used in newer.items() if used))


def require_support(can: Capabilities, workload: Workload, options: Options) -> Device:
    """Check that a backend can run a workload with these options.

    Args:
        can: what the backend supports.
        workload: the workload.
        options: how to run it.

    Returns:
        The device of ``options``.

    Raises:
        AbsentDevice: the backend does not see the device.
        Unsupported: the backend does not have a layer, loss, optimiser, style or precision, or the
            memory of a CPU is to be limited.
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
        *(
            ("the layer, loss or optimiser", kind, tuple(sorted(can.kinds)))
            for kind in kinds_of(workload)
        ),
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
            "--memory-fraction has no meaning on a CPU",
            expected="an accelerator such as cuda:0",
            found=device.id,
        )
    return device


def require_memory(workload: Workload, device: Device, options: Options) -> None:
    """Check that a step can fit into the memory of a device, with any framework.

    Args:
        workload: the workload.
        device: the device.
        options: how to run it.

    Raises:
        Unsupported: it can't; the error names a batch size that could fit.
    """
    memory = device.memory_bytes
    batch = workload.batches.size
    arithmetic = PRECISIONS[options.precision]
    if device.kind == "cpu":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    value_bytes = 2 if arithmetic.mixed else arithmetic.value_bytes
    fixed, each = held(lay_out(workload), workload.optimizer, value_bytes)
    if memory is not None and batch != "full" and fixed + batch * each > memory:
        fits = max(0, memory - fixed) // each
        fix = f"A batch of at most {fits:,} could fit." if fits else "Not even a batch of one fits."
        raise Unsupported(
            f"the memory of {device.id} can't hold a step of {workload.name}",
            expected=f"at least {units.bytes_(fixed + batch * each)} for a batch of {batch:,}",
            found=units.bytes_(memory),
            fix=fix,
        )
