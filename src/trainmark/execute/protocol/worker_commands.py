"""Requests to a measured process, which parses them with :func:`read`, since it has no msgspec."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from trainmark.backends.base import Options, StepPart
from trainmark.backends.layout import Rendezvous
from trainmark.data.load import DataFolder
from trainmark.errors import ProtocolError
from trainmark.execute.protocol.wire import Message
from trainmark.workload.decode import Misfit, decode, dotted
from trainmark.workload.products import Convolution, Product
from trainmark.workload.spec import Workload

TurnsOfTraining: TypeAlias = Literal["to-the-end", "until-stopped", "slices-first"]
"""What an interleaved training does; see :class:`Train`."""


@dataclass(frozen=True)
class Probe:
    """Report the backend's capabilities. Answered by ``Capable``."""

    backend: str


@dataclass(frozen=True)
class ListBackends:
    """List the registered backends, plug-ins included. Answered by ``BackendsListed``."""


@dataclass(frozen=True)
class MeasurePeaks:
    """Measure the peak speed of devices, one after the other.

    Each device is answered by ``PeaksMeasured``, or not at all if the backend can't measure it.

    Args:
        backend: name of the backend.
        options: one for each device, all with the same precision.
    """

    backend: str
    options: tuple[Options, ...]


@dataclass(frozen=True)
class Examine:
    """Examine the backend.

    It is answered in several parts, so that a crash loses only the remaining ones.
    """

    backend: str


@dataclass(frozen=True)
class OfTraining:
    """Base class of requests about the training of one workload."""

    backend: str
    workload: Workload
    dataset: DataFolder
    options: Options


@dataclass(frozen=True)
class Predict(OfTraining):
    """Evaluate these weights and send the outputs for the test set."""

    weights: str


@dataclass(frozen=True)
class Generate(OfTraining):
    """Continue the tokens of ``prompt`` with ``length`` more.

    A ``temperature`` of 0 takes the likeliest ones.

    Answered by a ``Continued`` for each.
    """

    weights: str
    prompt: tuple[int, ...]
    length: int
    temperature: float
    seed: int


@dataclass(frozen=True)
class ReplayTraining(OfTraining):
    """Train again up to the step that fails, at most ``steps``.

    The steps that may show why are inspected.
    """

    steps: int


@dataclass(frozen=True)
class ComputeReference(OfTraining):
    """Compute the steps that ``parity`` compares with the reference.

    They are written to the file ``place``.
    """

    place: str


@dataclass(frozen=True)
class CheckParity(OfTraining):
    """Compute the steps in the file ``reference`` and compare them.

    Then train ``free_steps`` freely.
    """

    reference: str
    free_steps: int


@dataclass(frozen=True)
class Train(OfTraining):
    """Train.

    Args:
        origin: reading of the clock at the start of the process.
        inject_order: whether trainmark, not the framework, decides the order of the examples.
        initial_weights: their file; None draws them from the seed.
        trainmark: the version, which must be the same on all machines of a training.
        weight_files: one per repeat: the file to save its weights to; None saves none.
        turns: train only in this training's turns (:class:`TakeTurn`). ``until-stopped``: for
            slices only, without evaluation. ``slices-first``: the same until
            :class:`StartTraining`, then to the end. None trains without pauses.
        ends_at: reading of the clock at which a training to the end stops at a step; None trains to
            its last one.
    """

    origin: float
    inject_order: bool
    initial_weights: str | None
    trainmark: str | None
    log_every: int | None
    weight_files: tuple[str | None, ...]
    turns: TurnsOfTraining | None = None
    ends_at: float | None = None


@dataclass(frozen=True)
class TakeTurn:
    """Compute until this many seconds of steps are timed; None trains to the end.

    It is sent while a training runs.

    Args:
        untimed: seconds of untimed steps that come first.
        until_steady: go on untimed until the time of a step is steady, since a GPU's clock rises
            after a pause.
        threads: numbers of CPU threads to try before the turn, if the backend can change them; the
            fastest stays.
        steps_a_second: of a command: count steps instead of seconds, of which this many stand for a
            second. None counts seconds.
    """

    seconds: float | None
    untimed: float = 0.0
    until_steady: bool = False
    threads: tuple[int, ...] = ()
    steps_a_second: float | None = None


@dataclass(frozen=True)
class StartTraining:
    """Train from the initial weights to the end, after slices.

    It is sent while a training runs, as a turn.
    """


@dataclass(frozen=True)
class Stop:
    """Stop, since no more slices are needed; sent while a training runs."""


@dataclass(frozen=True)
class StartRanks:
    """Start ``ranks`` processes on this machine, and send ``training`` to each of them."""

    training: Train
    ranks: int
    rendezvous: Rendezvous


@dataclass(frozen=True)
class Variant:
    """One timed variant of a training.

    Args:
        without: omitted parts, as far as the step has them.
        takes_away: the part whose cost this variant measures; the variant is dropped if the step
            doesn't have it.
        stretch: steps timed at a time, as a multiple of those of the first variant.
    """

    name: str
    workload: Workload
    options: Options
    without: tuple[StepPart, ...] = ()
    takes_away: StepPart | None = None
    stretch: float = 1.0


@dataclass(frozen=True)
class Dissect:
    """Time variants of a training in interleaved rounds; the first one is the whole step.

    Args:
        products, convolutions: operations that are timed alone.
        peak_size: size of the product that measures the device's peak.
        window: seconds of a stretch.
        budget: seconds after which no round begins, over all sittings.
        rounds: number of rounds, over all sittings.
        sitting, sittings: number of this process, from 0, and of all processes; each does its share
            of the rounds.
        evaluations: number of evaluations of the first variant, timed at the end.
        settling: seconds that all sittings may take to start, which limits their number; None is no
            limit.
    """

    backend: str
    dataset: DataFolder
    variants: tuple[Variant, ...]
    window: float
    budget: float
    rounds: int
    products: tuple[Product, ...] = ()
    convolutions: tuple[Convolution, ...] = ()
    peak_size: int | None = None
    sitting: int = 0
    sittings: int = 1
    evaluations: int = 0
    settling: float | None = None


ENVIRONMENTS = ("venv", ".venv", "node_modules")
"""Names of folders with installed packages, which an experiment's copy links."""


@dataclass(frozen=True)
class RunScript:
    """Run a user's command; if it takes turns, it pauses where it can.

    Args:
        environment: its additional environment variables.
        inject: observe the steps of Python processes.
        most_steps: the step after which an observed training ends; None trains to the end.
        metric: name of a figure whose logged values are reported.
        scratch: folder that is copied for the command, which runs in the copy; None runs it where
            it is.
        confined: let the kernel refuse what the command writes outside of the folder of its run, so
            that large files can be linked into the copy.
        outputs: folder that keeps the files which the first complete run has written in its copy;
            None keeps none.
        files: text of files that the copy has instead of the original ones, by their path in it.
    """

    origin: float
    argv: tuple[str, ...]
    in_turns: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    inject: bool = False
    most_steps: int | None = None
    metric: str | None = None
    scratch: str | None = None
    confined: bool = False
    outputs: str | None = None
    files: dict[str, str] = field(default_factory=dict)


_AboutBackends = Probe | ListBackends | MeasurePeaks | Examine
_AboutWorkloads = (
    Predict
    | Generate
    | ReplayTraining
    | ComputeReference
    | CheckParity
    | Train
    | StartRanks
    | Dissect
)
WorkerCommand = _AboutBackends | _AboutWorkloads | RunScript
_BY_NAME: dict[str, type[WorkerCommand]] = {kind.__name__: kind for kind in get_args(WorkerCommand)}


def read(message: Message) -> WorkerCommand:
    """Parse the request in ``message``.

    Raises :class:`~trainmark.errors.ProtocolError` for anything else.
    """
    event = message["event"]
    fields = {name: value for name, value in message.items() if name != "event"}
    if event not in _BY_NAME:
        raise ProtocolError(
            "unknown request to this version of trainmark",
            expected=", ".join(_BY_NAME),
            found=event,
        )
    try:
        return decode(_BY_NAME[event], fields)
    except Misfit as misfit:
        problem = f"the request {event} is invalid at {dotted(misfit.path) or 'its keys'}"
        raise ProtocolError(problem, expected=misfit.expected, found=misfit.found) from misfit
