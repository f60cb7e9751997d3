"""The messages that a measured process may send, checked here so that the parent can rely on them.

It may be a framework's plug-in, or an interpreter of somebody's own; whatever it sends ends in records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from trainmark.errors import ProtocolError
from trainmark.execute.wire import LONGEST_SECONDS, Message
from trainmark.record.codec import require_shallow
from trainmark.units import many

Number = float
Numbers = list[float]
Seconds = Annotated[float, Meta(ge=0, le=LONGEST_SECONDS)]
Difference = Annotated[float, Meta(ge=-LONGEST_SECONDS, le=LONGEST_SECONDS)]
"""Of two times in seconds; on a busy machine the longer one may come out shorter."""
Count = Annotated[int, Meta(ge=0, lt=1 << 53)]


class Failed(Struct):
    reason: str
    rank: int | None = None


class Diverged(Struct):
    reason: str
    step: int | None
    before: Number | None


class Ready(Struct):
    seconds: Seconds | None
    packages: dict[str, str]
    steps: Count
    epochs: Count
    weights_sha256: str | None = None


class Compiled(Struct):
    seconds: Seconds | None


class LogLine(Struct, forbid_unknown_fields=True):
    step: Count
    loss: Number
    samples_per_second: Number
    seconds_per_step: Number


class Epoch(Struct):
    index: Count
    start: Seconds
    seconds: Seconds
    steps: Count
    examples: Count
    losses: Numbers
    l2_losses: Numbers | None
    log: list[LogLine]
    train_loss: Number = 0.0
    train_accuracy: Number = 0.0


class Evaluated(Struct):
    index: Count
    seconds: Seconds
    test_loss: Number
    test_accuracy: Number
    train_loss: Number = 0.0
    train_accuracy: Number = 0.0


class Finished(Struct):
    settings: dict[str, Any] = {}
    unchanged_weights: list[str] | None = None
    host_peak_bytes: Count | None = None
    device_peak_bytes: Count | None = None


class ReportedEpoch(Struct):
    index: Count
    start: Seconds
    seconds: Seconds
    steps: Count | None
    examples: Count | None
    data_wait_seconds: Seconds | None
    packages: dict[str, str]
    losses: Numbers
    log: list[LogLine]
    train_loss: Number = 0.0
    train_accuracy: Number = 0.0


class ReportedTest(Struct):
    index: Count
    seconds: Seconds
    test_loss: Number | None
    test_accuracy: Number | None


class Started(Struct):
    pid: Annotated[int, Meta(gt=1, lt=1 << 31)]
    start: Seconds


class Exited(Struct):
    code: Annotated[int, Meta(ge=-(1 << 31), lt=1 << 31)]
    seconds: Seconds
    user_seconds: Seconds
    system_seconds: Seconds
    host_peak_bytes: Count | None
    left: Count
    left_out: Count
    odd: list[str]
    packages: dict[str, str]
    language: str | None


class Hello(Struct):
    rank: Count
    local_rank: Count
    host: str


class _Event(Struct):
    event: str


class OfRank(Struct):
    rank: int
    message: dict[str, Any]


class Device(Struct, forbid_unknown_fields=True):
    id: str
    name: str | None
    kind: Literal["cpu", "accelerator"]
    memory_bytes: Count | None
    precisions: list[str]


class Capabilities(Struct):
    backend: str
    version: str
    styles: list[str]
    devices: list[Device]
    kinds: list[str]
    packages: dict[str, str]
    untested: bool
    spreads: Literal["processes", "devices"] | None
    compiles_already: bool
    limited: bool
    python: str


class Backends(Struct):
    install: dict[str, str]


class Peaks(Struct):
    matmul_flops_per_second: Number
    copy_bytes_per_second: Number
    matmul_size: Count
    copied_bytes: Count


class Collective(Struct):
    bytes: Count
    seconds: list[Difference]


class Collectives(Struct):
    timings: list[Collective]


class Asked(Struct):
    loss: Number
    accuracy: Number
    labels: list[int]


class Outputs(Struct):
    values: list[Numbers]


class Examined(Struct):
    built_for: str | None
    architectures: list[str] | None
    blind: str | None
    hidden_by: str | None


class SeenDevices(Struct):
    version: str | None
    devices: list[str]


class Product(Struct):
    device: str
    values: Numbers | None
    placed_on: str | None
    seconds: Number | None
    problem: str | None


class Loaded(Struct):
    libraries: dict[str, list[str]]


class Preparing(Struct):
    name: str
    done: Count
    of: Annotated[int, Meta(gt=0)]


class Dropped(Struct):
    name: str
    reason: str


class Prepared(Struct):
    compile_seconds: Seconds | None
    lengths: dict[str, Any]
    sittings: Annotated[int, Meta(gt=0)]
    rounds: Annotated[int, Meta(gt=0)]


class Round(Struct):
    index: Count
    seconds: dict[str, Number]
    starts: dict[str, Number | None]


class Evaluation(Struct):
    seconds: Seconds


class Replayed(Struct):
    losses: Numbers
    failed_at: Count | None


class Tensor(Struct):
    kind: str
    name: str
    finite: bool
    largest: Number
    zeros: Number
    dead: Number | None


class Alone(Struct):
    example: Count
    loss: Number
    reference: Number


class Opened(Struct):
    step: Count
    loss: Number
    tensors: list[Tensor]
    reference_loss: Number | None
    gap: Number | None
    bad_labels: list[int]
    unchanged: list[str]
    finite_after: bool
    moved: dict[str, Number | None]
    alone: list[Alone]


Forms = Mapping[str, type[Struct]]
_END: Forms = {"failed": Failed, "diverged": Diverged}
_TRAINING: Forms = {"ready": Ready, "compiled": Compiled, "epoch": Epoch, "evaluated": Evaluated, "finished": Finished}
_COLLECTIVES: Forms = {"collectives": Collectives}
FORMS: Mapping[str, Forms] = {
    "train": _TRAINING,
    "launch": {**_TRAINING, **_COLLECTIVES, "rank": OfRank},
    "script": {
        "ready": Ready, "started": Started, "epoch": ReportedEpoch, "evaluated": ReportedTest, "exited": Exited,
    },
    "probe": {"capabilities": Capabilities},
    "backends": {"backends": Backends},
    "limits": {"peaks": Peaks},
    "collectives": _COLLECTIVES,
    "examine": {"examined": Examined, "seen": SeenDevices, "product": Product, "loaded": Loaded},
    "predict": {"evaluated": Asked, "outputs": Outputs},
    "dissect": {
        "preparing": Preparing, "dropped": Dropped, "ready": Prepared, "round": Round, "evaluated": Evaluation,
    },
    "replay": {"replayed": Replayed, "opened": Opened},
}  # fmt: skip
"""By the event of the request, then by that of the answer. What is not here is not read by anybody."""


def require_sound(asked: str, message: Message) -> None:
    """Raise :class:`~trainmark.errors.ProtocolError` for an answer to ``asked`` that has another form."""
    forms = {**_END, **FORMS.get(asked, {})}
    form = forms.get(message["event"])
    if form is not None:
        _convert(form, message)
    if form is OfRank:
        inner = message["message"]
        _convert(_Event, inner)
        if inner["event"] == "rank":
            raise ProtocolError("the measured process broke the protocol", found="a nested rank message")
        if inner["event"] == "hello":
            _convert(Hello, inner)
        require_sound(asked, inner)


def require_in_place(message: Message, epochs: int) -> None:
    """Raise ProtocolError unless, after so many epochs, ``message`` is the next one, or the test of the last one."""
    if message["index"] != (epochs if message["event"] == "epoch" else epochs - 1):
        raise ProtocolError(
            "the measured process broke the protocol",
            expected="epochs in order, each before its evaluation",
            found=f"{message['event']} {message['index']} after {many(epochs, 'epoch')}",
        )


def _convert(form: type[Struct], message: Message) -> None:
    try:
        msgspec.convert(message, form)
        require_shallow(message)
        msgspec.msgpack.encode(message)  # OverflowError for a whole number that no record can hold
    except (msgspec.ValidationError, OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise ProtocolError(
            f"the measured process broke the protocol with its {str(message.get('event'))[:40]!r}",
            expected="a message as in docs/protocol.md or execute/messages.py",
            found=str(error),
        ) from error
