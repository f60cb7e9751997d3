"""Answers of a worker.

It may run a plug-in, and its answers are kept in records, so the parent checks each of them
(:mod:`trainmark.execute.parent.check`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from trainmark.backends.base import Capabilities
from trainmark.backends.examination import DeviceProduct, Examination
from trainmark.backends.peaks import DevicePeaks
from trainmark.execute.protocol.wire import LONGEST_SECONDS
from trainmark.record.checks import StepChecks
from trainmark.record.inspection import StepInspection
from trainmark.record.observed import Observed
from trainmark.workload.decode import Bound, Bounded

NOT_A_PART = "not a part of this step"
"""Reason to drop a variant that would omit a part the step doesn't have."""


def _within(low: float, high: float) -> Bound:
    def holds(value: float) -> bool:
        return low <= value <= high

    return Bound(holds, f"{low:g} to {high:g}")


Seconds = Annotated[float, _within(0, LONGEST_SECONDS)]
Count = Annotated[int, _within(0, (1 << 53) - 1)]
Positive = Annotated[int, _within(1, (1 << 53) - 1)]
_MOST_OBSERVED = 1e15


@dataclass(frozen=True)
class Answer(Bounded):
    """Base class; rejects numbers out of range."""


@dataclass(frozen=True)
class Failed(Answer):
    """The process can't continue; ``rank`` if it has several."""

    reason: str
    rank: int | None = None


@dataclass(frozen=True)
class Diverged(Answer):
    """The loss of this step is not finite; the previous one was ``before``."""

    reason: str
    step: int | None
    before: float | None


@dataclass(frozen=True)
class ThreadsTried(Answer):
    """The time of a step with several numbers of CPU threads; training continues with ``chosen``.

    Args:
        default: number of threads that the framework chose.
        tried: each number of threads with the seconds of a step.
    """

    chosen: Positive
    default: Positive
    tried: list[tuple[Positive, Seconds]]


@dataclass(frozen=True)
class Done(Answer):
    """There are no further answers."""


@dataclass(frozen=True)
class Ready(Answer):
    """A training or a command can begin.

    The seconds are since the process started, the steps are per run.
    """

    seconds: Seconds | None = None
    packages: dict[str, str] = field(default_factory=dict)
    steps: Count = 0
    epochs: Count = 0
    weights_sha256: str | None = None


@dataclass(frozen=True)
class Compiled(Answer):
    """Compilation has ended; the seconds are None if there was nothing to compile."""

    seconds: Seconds | None


@dataclass(frozen=True)
class LoggedStep(Answer):
    """A step, as printed by ``--log-every``."""

    step: Count
    loss: float
    samples_per_second: float
    seconds_per_step: float


@dataclass(frozen=True)
class EpochEnded(Answer):
    """One epoch.

    For a command, None is what it does not report, and ``batches`` is the hook's count.

    The ``windows`` are the times of training: start, seconds.
    """

    index: Count
    start: Seconds
    seconds: Seconds
    steps: Count | None
    examples: Count | None
    losses: list[float] = field(default_factory=list)
    l2_losses: list[float] | None = None
    log: list[LoggedStep] = field(default_factory=list)
    train_loss: float | None = None
    train_accuracy: float | None = None
    data_wait_seconds: Seconds | None = None
    packages: dict[str, str] = field(default_factory=dict)
    batches: Count | None = None
    windows: list[tuple[Seconds, Seconds]] = field(default_factory=list)


@dataclass(frozen=True)
class Waiting(Answer):
    """The training pauses until its turn; ``settled`` if it trained before the first one.

    The ``loss`` is that of its last step, if known.
    """

    settled: bool = False
    loss: float | None = None


@dataclass(frozen=True)
class SliceTimed(Answer):
    """A slice of a training has ended.

    It has ``steps`` from ``start`` on, of which the last ``timed_steps`` took ``seconds``, and had
    ``passes`` forward passes with gradients, if that is known.

    For a command, a step is a batch or, if it reports none, an epoch, whose ``examples`` come with
    the epoch.
    """

    start: Seconds
    steps: Positive
    timed_steps: Positive
    seconds: Annotated[float, _within(1e-9, LONGEST_SECONDS)]
    examples: Count | None
    passes: Count | None = None


@dataclass(frozen=True)
class Evaluated(Answer):
    """The evaluation after an epoch; its training figures are exact, if requested."""

    index: Count
    seconds: Seconds
    test_loss: float | None
    test_accuracy: float | None
    train_loss: float | None = None
    train_accuracy: float | None = None


@dataclass(frozen=True)
class EvaluatedBefore(Answer):
    """The evaluation of the initial weights."""

    seconds: Seconds
    test_loss: float | None
    test_accuracy: float | None
    train_loss: float | None = None
    train_accuracy: float | None = None


@dataclass(frozen=True)
class Finished(Answer):
    """A run has ended; ``shortened`` is whether the time limit ended it before its last step."""

    settings: dict[str, Any] = field(default_factory=dict)
    unchanged_weights: list[str] | None = None
    host_peak_bytes: Count | None = None
    device_peak_bytes: Count | None = None
    shortened: bool = False


@dataclass(frozen=True)
class RankBorn(Answer):
    """One of several ranks has started."""

    rank: Count
    local_rank: Count
    host: str


@dataclass(frozen=True)
class OfRank(Answer):
    """An answer of one rank."""

    rank: int
    message: Any


@dataclass(frozen=True)
class CommandStarted(Answer):
    """A command has started."""

    pid: Annotated[int, _within(2, (1 << 31) - 1)]
    start: Seconds


@dataclass(frozen=True)
class CommandExited(Answer):
    """A command has ended.

    ``left`` is the number of processes it left behind, ``left_out`` that of its ignored reports.

    ``attached`` is whether the observer was started; None if it should not be.
    """

    code: Annotated[int, _within(-(1 << 31), (1 << 31) - 1)]
    seconds: Seconds
    user_seconds: Seconds
    system_seconds: Seconds
    host_peak_bytes: Count | None
    left: Count
    left_out: Count
    odd: list[str]
    packages: dict[str, str]
    language: str | None
    attached: bool | None = None


@dataclass(frozen=True)
class StepsObserved(Answer, Observed):
    """What the observer of a command has seen so far.

    The ``losses`` are those since the previous answer.

    Args:
        packages: versions of its frameworks.
    """

    packages: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, (int, float)) and not 0 <= value <= _MOST_OBSERVED:
                raise ValueError(f"{name}: expected 0 to {_MOST_OBSERVED:g}, found {value}")


@dataclass(frozen=True)
class MetricLogged(Answer):
    """Values of the figure that ``--metric`` names, which a script has logged to a library.

    Args:
        tag: the name under which they were logged; empty if none were.
        count: how many there were so far.
        values: the number of steps before each of the next ones, and that value.
        extremes: the same for the lowest and the highest value so far.
        others: other names that were logged.
    """

    tag: str
    count: Count
    values: list[tuple[float, float]]
    extremes: list[tuple[float, float]]
    others: list[str]


@dataclass(frozen=True)
class Capable(Answer):
    """The capabilities of a backend; ``limited`` is whether it can measure its devices' peaks."""

    capabilities: Capabilities
    python: str
    limited: bool


@dataclass(frozen=True)
class BackendsListed(Answer):
    """The command that installs each backend, by name."""

    install: dict[str, str]


@dataclass(frozen=True)
class PeaksMeasured(Answer):
    """The peak speed of a device."""

    device: str
    peaks: DevicePeaks


@dataclass(frozen=True)
class Examined(Answer):
    """How a framework fits this machine's devices, as far as it is known.

    It has a small matrix product on each device that the framework sees, and the loaded GPU
    libraries, each with its files.
    """

    version: str | None = None
    devices: tuple[str, ...] | None = None
    examination: Examination | None = None
    products: tuple[DeviceProduct, ...] = ()
    libraries: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Scored(Answer):
    """The result of given weights on the test set, and the set's labels."""

    loss: float
    accuracy: float
    labels: list[int]


@dataclass(frozen=True)
class Outputs(Answer):
    """Outputs of the last layer for the next examples of the test set."""

    values: list[list[float]]


@dataclass(frozen=True)
class Continued(Answer):
    """The next token of a text.

    The first one has the probabilities of all tokens at temperature 1.
    """

    token: Count
    probabilities: list[float] | None


@dataclass(frozen=True)
class Preparing(Answer):
    """A variant is being prepared, after ``done`` others."""

    name: str
    done: Count
    of: Annotated[int, _within(1, 1 << 53)]


@dataclass(frozen=True)
class Dropped(Answer):
    """A variant is not available."""

    name: str
    reason: str


@dataclass(frozen=True)
class VariantsReady(Answer):
    """All variants are ready; ``lengths`` has the steps of each one's short and long stretch."""

    compile_seconds: Seconds | None
    lengths: dict[str, tuple[int, int]]
    sittings: Annotated[int, _within(1, 1 << 53)]
    rounds: Annotated[int, _within(1, 1 << 53)]


@dataclass(frozen=True)
class RoundTimed(Answer):
    """Seconds of a step and of starting an epoch, by variant."""

    index: Count
    seconds: dict[str, float]
    starts: dict[str, float]


@dataclass(frozen=True)
class EvaluationTimed(Answer):
    """One evaluation of the test set."""

    seconds: Seconds


@dataclass(frozen=True)
class Replayed(Answer):
    """The losses up to and including the first that is not finite."""

    losses: list[float]
    failed_at: Count | None


@dataclass(frozen=True)
class StepInspected(Answer):
    """One step of a replay."""

    inspection: StepInspection


@dataclass(frozen=True)
class ReferenceComputed(Answer):
    """The reference has computed ``done`` steps."""

    done: Count
    of: Count


@dataclass(frozen=True)
class StepChecked(Answer):
    """Results next to the reference's."""

    checks: StepChecks


@dataclass(frozen=True)
class NotChecked(Answer):
    """What can't be checked, or is not as it should be but no mistake."""

    what: str


@dataclass(frozen=True)
class FreeLosses(Answer):
    """The losses of a training that nothing corrects."""

    losses: list[float]


ANSWERS: Mapping[str, type[Answer]] = {kind.__name__: kind for kind in Answer.__subclasses__()}
"""Answers by name; the parent ignores any other."""


_A = TypeVar("_A", bound=Answer)


def of_kind(answers: Iterable[Answer], kind: type[_A]) -> list[_A]:
    """Return the ``answers`` of one kind."""
    return [answer for answer in answers if isinstance(answer, kind)]
