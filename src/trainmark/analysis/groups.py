"""Records of the same thing, measured again: what must be equal for that, and which dimension may be asked about."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from trainmark.analysis.machines import Told, tell_apart
from trainmark.analysis.summary import MEASURED
from trainmark.record.codec import content
from trainmark.record.record import Record

Dimension = Literal["device", "backend", "style", "machine", "python"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)

_VARIES_WITH: dict[Dimension, frozenset[str]] = {
    "device": frozenset({"device", "device_name"}),
    "backend": frozenset({"backend", "version"}),
    "style": frozenset({"style", "program"}),
    # Machines have the devices and the builds that they have; Key.without() keeps CPUs and accelerators apart.
    "machine": frozenset(
        {"machine", "instance", "cpu", "cores", "cpu_quota", "threads", "device", "device_name", "version"}
    ),
    "python": frozenset({"python", "version"}),
}


def _fact(of: Callable[[Record, Told], Any]) -> Any:
    """A field of a key, and where a record, on a machine of that name, has it."""
    return dataclasses.field(metadata={"of": of})


@dataclass(frozen=True)
class Key:
    """Everything that must be equal for two runs to be repeats of each other.

    A name is not enough where it can stay while the thing changes: the dataset has its checksum, the device and the
    machine their hardware, the workload its fingerprints.

    Args:
        machine: its host's name, with a number where others share that.
        instance: the machine's labels, where it has some.
        device_name: of an accelerator; a CPU's is ``cpu``.
        cores: that the run could use.
        cpu_quota: how many of them at a time; None without a quota.
        threads: None is the framework's own choice.
        memory_fraction: 0 to 1, or None for no limit.
        dataset, precision: and all of the data, None where a command does not tell.
        weights_from: id of the record whose weights it started from.
        program: of a command, the checksum's beginning of its script; an edited one is another side.
        layout: copies and stages of a training on several devices; None of one on its own.
    """

    workload: str = _fact(lambda record, _: record.workload.name)
    backend: str = _fact(lambda record, _: record.backend.name)
    style: str = _fact(lambda record, _: record.backend.style)
    device: str = _fact(lambda record, _: record.device.id)
    machine: str = _fact(lambda _, machine: machine.title)
    python: str = _fact(lambda record, _: record.python.label)
    precision: str | None = _fact(lambda record, _: record.backend.precision)
    threads: int | None = _fact(lambda record, _: record.threads)
    version: str | None = _fact(lambda record, _: record.backend.version)
    protocol: str = _fact(lambda record, _: record.protocol)
    dataset: str | None = _fact(lambda record, _: record.dataset and record.dataset.name)
    train_examples: int | None = _fact(lambda record, _: record.dataset and record.dataset.train_examples)
    test_examples: int | None = _fact(lambda record, _: record.dataset and record.dataset.test_examples)
    memory_fraction: float | None = _fact(lambda record, _: record.memory_fraction)
    weights_from: str | None = _fact(lambda record, _: record.weights_from)
    device_name: str | None = _fact(
        lambda record, _: record.device.name if record.device.kind == "accelerator" else None
    )
    cpu: str | None = _fact(lambda record, _: record.machine.cpu)
    cores: int | None = _fact(lambda record, _: record.machine.usable_cores or record.machine.logical_cores)
    cpu_quota: float | None = _fact(lambda record, _: record.machine.cpu_quota)
    dataset_sha256: str | None = _fact(lambda record, _: record.dataset and record.dataset.sha256)
    step_fingerprint: str = _fact(lambda record, _: record.workload.step_fingerprint)
    schedule_fingerprint: str = _fact(lambda record, _: record.workload.schedule_fingerprint)
    program: str | None = _fact(
        lambda record, _: (record.process and (record.process.program_sha256 or "")[:8]) or None
    )
    layout: str | None = _fact(lambda record, _: _layout(record))
    instance: str | None = _fact(lambda _, machine: machine.labels)

    @property
    def same_work(self) -> tuple[str, str, str]:
        """Equal for groups that may be compared at all; workloads are never mixed in one ratio."""
        return self.workload, self.step_fingerprint, self.schedule_fingerprint

    def without(self, dimension: Dimension) -> tuple[object, ...]:
        """Everything but what varies along ``dimension``: equal for groups that differ along it alone."""
        varies = _VARIES_WITH[dimension]
        rest = tuple(getattr(self, field.name) for field in dataclasses.fields(self) if field.name not in varies)
        return (*rest, "accelerator" if self.device_name else self.device) if dimension == "machine" else rest


@dataclass(frozen=True)
class Group:
    """Repeats of one thing: the measured records, oldest first, and how many more failed."""

    key: Key
    records: tuple[Record, ...]
    failed: int


def key_of(record: Record, machine: Told | None = None) -> Key:
    """What ``record`` measured; ``machine`` as it is called among others, by its host's name where there are none."""
    told = machine or Told(record.machine.name, record.machine.labelled)
    return Key(**{fact.name: fact.metadata["of"](record, told) for fact in dataclasses.fields(Key)})


def _layout(record: Record) -> str | None:
    spread = record.group.spread
    if spread is None:
        return None
    pieces = f", {spread.microbatches} microbatches" if spread.microbatches > 1 else ""
    machines = f", {spread.nodes} machines" if spread.nodes > 1 else ""
    apart = "" if spread.all_reduce else ", without averaging"
    return f"{spread.data}×{spread.pipeline}{pieces}{machines}{apart}"


def group_records(records: Iterable[Record]) -> list[Group]:
    """The records by key, in the order of each group's first measurement; a record given twice counts once.

    A run that failed early knows less about itself (no framework version, no device name): it is counted with the
    group that it agrees with in all it knows.
    """
    unique = {content(record): record for record in records if _counts(record)}  # a copy is equal
    ordered = sorted(unique.values(), key=lambda record: (record.created, record.round, record.id))
    machine_of = tell_apart(ordered)
    measured: dict[Key, list[Record]] = {}
    for record in ordered:
        if record.outcome.status in MEASURED:
            measured.setdefault(key_of(record, machine_of(record)), []).append(record)
    started: dict[Key, int] = {}
    failed: dict[Key, int] = {}
    redone = {_run_of(record) for records in measured.values() for record in records}
    for position, record in enumerate(ordered):
        key = key_of(record, machine_of(record))
        if record.outcome.status not in MEASURED:
            if _run_of(record) in redone:
                continue  # a later command with --resume did it
            key = next((known for known in [*measured, *failed] if _fits(key, known)), key)
            failed[key] = failed.get(key, 0) + 1
        started.setdefault(key, position)
    return [
        Group(key, tuple(measured.get(key, ())), failed.get(key, 0)) for key in sorted(started, key=started.__getitem__)
    ]


def _counts(record: Record) -> bool:
    """Whether it is a run of its own: what a rank says is in the record of the whole, too, and the nudged ones of a
    scale are there for their losses alone."""
    group = record.group
    return group.rank is None and not (group.kind == "scale" and group.trial is not None)


def _run_of(record: Record) -> tuple[object, ...]:
    """What was planned, whether it came off or not."""
    side = (record.backend.name, record.backend.style, record.backend.precision, record.device.id, record.python.label)
    fingerprints = (record.workload.step_fingerprint, record.workload.schedule_fingerprint)
    part = (_layout(record), record.group.trial)
    return (record.group.id, record.repeat, record.threads, *part, *fingerprints, *side)


def _fits(partial: Key, whole: Key) -> bool:
    """Whether ``partial`` says nothing else than ``whole``; None, 0 and "" say nothing."""
    pairs = zip(dataclasses.astuple(partial), dataclasses.astuple(whole), strict=True)
    return all(not said or said == known for said, known in pairs)
