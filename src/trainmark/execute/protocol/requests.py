"""What a measured process is asked for. It reads its request with :func:`read`, since it has no msgspec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trainmark.backends.base import Options, Part
from trainmark.backends.layout import Rendezvous
from trainmark.data.load import DataFolder
from trainmark.errors import ProtocolError
from trainmark.execute.protocol.wire import Message
from trainmark.workload.decode import Misfit, decode, dotted
from trainmark.workload.products import Convolution, Product
from trainmark.workload.spec import Workload


@dataclass(frozen=True)
class Probe:
    """What can this backend do here? Answered by ``Capable``."""

    backend: str


@dataclass(frozen=True)
class ListBackends:
    """Which backends are registered here, plug-ins included? Answered by ``BackendsListed``."""


@dataclass(frozen=True)
class MeasurePeaks:
    """How fast can the device be? Answered by ``PeaksMeasured``; not at all by a backend that can't tell."""

    backend: str
    options: Options


@dataclass(frozen=True)
class Examine:
    """Is the backend well? Answered bit by bit, so that what was learnt before a crash is kept."""

    backend: str


@dataclass(frozen=True)
class OfTraining:
    """Any request about the training of one workload."""

    backend: str
    workload: Workload
    dataset: DataFolder
    options: Options


@dataclass(frozen=True)
class Predict(OfTraining):
    """Evaluate these weights and tell the outputs for the test set."""

    weights: str


@dataclass(frozen=True)
class ReplayTraining(OfTraining):
    """Train again up to the step that fails, at most ``steps``, and open up what may show why."""

    steps: int


@dataclass(frozen=True)
class Repeat:
    """One of the runs of a process; ``weights`` is the file to keep its weights in."""

    index: int
    weights: str | None


@dataclass(frozen=True)
class Train(OfTraining):
    """Train.

    Args:
        origin: reading of the clock at the start of the process.
        inject_order: trainmark decides the order of the examples, not the framework.
        initial_weights: their file; None draws them from the seed.
        trainmark: the version that the ranks of several machines must have in common.
        nudge: number of the nudge that the weights get; None leaves them.
        turns: train only when it is this training's turn (:class:`TakeTurn`); ``until-stopped`` for slices alone,
            without an evaluation. None trains at once.
    """

    origin: float
    inject_order: bool
    initial_weights: str | None
    trainmark: str | None
    nudge: int | None
    log_every: int | None
    repeats: tuple[Repeat, ...]
    turns: Literal["to-the-end", "until-stopped"] | None = None


@dataclass(frozen=True)
class TakeTurn:
    """Compute until so many seconds of steps are timed; None is to the end. Sent while a training runs.

    Args:
        untimed: seconds of steps that come first.
    """

    seconds: float | None
    untimed: float = 0.0


@dataclass(frozen=True)
class Stop:
    """Finish where you are: no more slices are needed. Sent while a training runs."""


@dataclass(frozen=True)
class StartRanks:
    """Start ``ranks`` processes on this machine, and give each of them ``request``."""

    backend: str
    device: str
    ranks: int
    rendezvous: Rendezvous
    request: Message


@dataclass(frozen=True)
class Variant:
    """One training that is timed.

    Args:
        without: parts that are left out, those of them that the step has.
        takes_away: the part whose cost this variant tells; it is not made where the step has none.
        stretch: steps timed at once, as a multiple of those of the first variant.
    """

    name: str
    workload: Workload
    options: Options
    without: tuple[Part, ...] = ()
    takes_away: Part | None = None
    stretch: float = 1.0


@dataclass(frozen=True)
class Dissect:
    """Time variants of a training against each other, in rounds; the first one is the whole step.

    Args:
        products, convolutions: that are timed alone.
        peak_size: of the product that stands for the device's peak.
        window: seconds of a stretch.
        budget: seconds after which no round begins, over all sittings.
        rounds: over all sittings.
        sitting, sittings: this process is one of so many, counted from 0, each of which makes its part of the rounds.
        evaluations: of the first variant that are timed at the end.
        settling: seconds that all of them may take to be ready; the first tells how many that allows. None is no limit.
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


@dataclass(frozen=True)
class RunScript:
    """Run a command of the user's own; in turns it pauses where it can."""

    origin: float
    argv: tuple[str, ...]
    in_turns: bool = False


Request = (
    Probe | ListBackends | MeasurePeaks | Examine | Predict | ReplayTraining | Train | StartRanks | Dissect | RunScript
)
_BY_NAME: dict[str, type[Request]] = {kind.__name__: kind for kind in get_args(Request)}


def read(message: Message) -> Request:
    """The request in ``message``; raises :class:`~trainmark.errors.ProtocolError` for anything else."""
    event, fields = message["event"], {name: value for name, value in message.items() if name != "event"}
    if event not in _BY_NAME:
        raise ProtocolError("this trainmark can't do what it is asked for", expected=", ".join(_BY_NAME), found=event)
    try:
        return decode(_BY_NAME[event], fields)
    except Misfit as misfit:
        place = dotted(misfit.path) or "its keys"
        raise ProtocolError(
            f"the request {event} does not fit at {place}", expected=misfit.expected, found=misfit.found
        ) from misfit
