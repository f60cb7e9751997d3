"""What differs between the machines that are compared, so that nobody takes a driver for a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trainmark import units
from trainmark.analysis.machines import tell_apart
from trainmark.record.record import Record

UNKNOWN = "not known"


@dataclass(frozen=True)
class Difference:
    """One thing, of every machine.

    Args:
        what: for people.
        values: by machine; several on one machine are listed.
    """

    what: str
    values: dict[str, str]

    @property
    def differs(self) -> bool:
        """Whether it is not the same on every machine."""
        return len(set(self.values.values())) > 1


def differences(records: Iterable[Record]) -> tuple[Difference, ...]:
    """All that is not the same on every machine of ``records``; nothing where there is only one machine."""
    return tuple(fact for fact in facts(records) if fact.differs)


def facts(records: Iterable[Record]) -> tuple[Difference, ...]:
    """All that is known of the machines of ``records``, the same everywhere or not."""
    records = list(records)
    machine_of = tell_apart(records)
    by_machine: dict[str, list[Record]] = {}
    for record in records:
        by_machine.setdefault(machine_of(record).title, []).append(record)
    known = dict(FACTS)
    for package in sorted({name for of in by_machine.values() for record in of for name in record.python.packages}):
        known[package] = _package(package)
    found = []
    for what, of in known.items():
        values = {
            machine: ", ".join(sorted({value for record in records if (value := of(record))})) or UNKNOWN
            for machine, records in by_machine.items()
        }
        if set(values.values()) != {UNKNOWN}:
            found.append(Difference(what, values))
    return tuple(found)


def _package(name: str) -> Callable[[Record], str | None]:
    return lambda record: record.python.packages.get(name)


def _turbo(record: Record) -> str | None:
    return None if record.machine.cpu_turbo is None else "on" if record.machine.cpu_turbo else "off"


def _quota(record: Record) -> str:
    quota = record.machine.cpu_quota
    return "none" if quota is None else f"{quota:g} cores"


FACTS: dict[str, Callable[[Record], str | None]] = {
    "labels": lambda record: record.machine.labelled,
    "price an hour": lambda record: None if record.price_per_hour is None else units.significant(record.price_per_hour),
    "device": lambda record: f"{record.device.id} {record.device.name or ''}".strip(),
    "CPU": lambda record: record.machine.cpu,
    "cores": lambda record: None if record.machine.usable_cores is None else str(record.machine.usable_cores),
    "CPU quota": _quota,
    "CPU governor": lambda record: ", ".join(record.machine.cpu_governors),
    "CPU turbo": _turbo,
    "memory": lambda record: units.bytes_(record.machine.memory_bytes) if record.machine.memory_bytes else None,
    "GPUs": lambda record: ", ".join(record.machine.gpus) or "none",
    "GPU driver": lambda record: record.machine.gpu_driver or ("none" if not record.machine.gpus else None),
    "CUDA of the driver": lambda record: record.machine.cuda or ("none" if not record.machine.gpus else None),
    "system": lambda record: record.machine.os,
    "Python": lambda record: record.python.version,
    "trainmark": lambda record: record.trainmark,
    "precision": lambda record: record.backend.precision,
    "threads": lambda record: (
        str(record.threads) if record.threads is not None else None if record.process else "default"
    ),
}
