"""Records of the same thing, measured again: what must be equal for that, and which dimension may be asked about."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

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

    workload: str
    backend: str
    style: str
    device: str
    machine: str
    python: str
    precision: str | None
    threads: int | None
    version: str | None
    protocol: str
    dataset: str | None
    train_examples: int | None
    test_examples: int | None
    memory_fraction: float | None
    weights_from: str | None
    device_name: str | None
    cpu: str | None
    cores: int | None
    cpu_quota: float | None
    dataset_sha256: str | None
    step_fingerprint: str
    schedule_fingerprint: str
    program: str | None = None
    layout: str | None = None
    instance: str | None = None

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
    machine = machine or Told(record.machine.name, record.machine.labelled)
    data = record.dataset
    return Key(
        workload=record.workload.name,
        backend=record.backend.name,
        style=record.backend.style,
        device=record.device.id,
        machine=machine.title,
        python=record.python.label,
        precision=record.backend.precision,
        threads=record.threads,
        version=record.backend.version,
        protocol=record.protocol,
        dataset=data.name if data else None,
        train_examples=data.train_examples if data else None,
        test_examples=data.test_examples if data else None,
        memory_fraction=record.memory_fraction,
        weights_from=record.weights_from,
        device_name=record.device.name if record.device.kind == "accelerator" else None,
        cpu=record.machine.cpu,
        cores=record.machine.usable_cores or record.machine.logical_cores,
        cpu_quota=record.machine.cpu_quota,
        dataset_sha256=data.sha256 if data else None,
        step_fingerprint=record.workload.step_fingerprint,
        schedule_fingerprint=record.workload.schedule_fingerprint,
        program=record.process.program_sha256[:8] if record.process and record.process.program_sha256 else None,
        layout=_layout(record),
        instance=machine.labels,
    )


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
