"""The facts that distinguish runs: for each, how to read it from a record, its title and its words.

Two selections of them identify a run. Runs with the same :class:`Key` are repeats of each other;
``--resume`` skips a run if a record with the same :class:`RunKey` ended well or diverged. Tables of
differences show the facts with a title; exported files can have any by name.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, NamedTuple, get_args

from trainmark import units
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record

Dimension = Literal["device", "backend", "style", "machine", "python"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)


class Fact(NamedTuple):
    """One property of a run, from its record.

    Args:
        of: returns its value; None if unknown.
        title: its title in tables of differences; empty if they don't show it.
        words: formats a known value.
        unknown: text for None.
        machine: whether it is a property of the machine rather than of the run.
    """

    of: Callable[[Record], Any]
    title: str = ""
    words: Callable[[Any], str] = str
    unknown: str = ""
    machine: bool = False

    def text(self, record: Record) -> str:
        """Return the value as text."""
        value = self.of(record)
        return self.unknown if value is None else self.words(value)


def _layout(record: Record) -> str | None:
    spread = record.group.spread
    if spread is None:
        return None
    pieces = f", {spread.microbatches} microbatches" if spread.microbatches > 1 else ""
    machines = f", {spread.nodes} machines" if spread.nodes > 1 else ""
    apart = "" if spread.all_reduce else ", without averaging"
    return f"{spread.data}×{spread.pipeline}{pieces}{machines}{apart}"


def _spread(record: Record) -> tuple[int | bool, ...] | None:
    spread = record.group.spread
    if spread is None:
        return None
    return (
        spread.data,
        spread.pipeline,
        spread.microbatches,
        spread.all_reduce,
        spread.weak,
        spread.nodes,
    )


def _command(record: Record) -> tuple[tuple[str, ...], str, str | None] | None:
    process = record.process
    if process is None:
        return None
    variables = (f"{name}={value}" for name, value in process.environment.items())
    return (*variables, *process.argv), process.directory, process.program_sha256


def tokens_of(record: Record) -> int | None:
    """Return the tokens of an example, a window of a text; None for images."""
    given = record.workload.view.input
    return given.length if given.is_text else None


def _computed_on(record: Record) -> str | None:
    return " ".join(filter(None, (record.device.id, record.device.name))) or None


def _gpu_driver(record: Record) -> str | None:
    return record.machine.gpu_driver or _none_without_gpus(record)


def _cuda(record: Record) -> str | None:
    return record.machine.cuda or _none_without_gpus(record)


def _none_without_gpus(record: Record) -> str | None:
    return None if record.machine.gpus else "none"


def _framework(record: Record) -> str:
    return f"{record.backend.name} {record.backend.version or ''}".strip()


def _data(record: Record) -> str | None:
    dataset = record.dataset
    return None if dataset is None else f"{dataset.name} {dataset.sha256[:12]}"


def _memory_bytes(record: Record) -> int | None:
    return record.machine.memory_bytes or None


def _threads_chosen(record: Record) -> int | str | None:
    return record.threads or (None if record.process else "default")


def _accelerator(record: Record) -> str | None:
    return record.device.name if record.device.kind == "accelerator" else None


def _cores(record: Record) -> int | None:
    return record.machine.usable_cores or record.machine.logical_cores


def _program(record: Record) -> str | None:
    """Return the start of the checksum of a command's script; None if there is none."""
    checksum = record.process and record.process.program_sha256
    return (checksum or "")[:8] or None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _dataset(name: str) -> Fact:
    """Return the fact that reads this field of a record's dataset; None without a dataset."""
    return Fact(lambda record: record.dataset and getattr(record.dataset, name))


def _machine(
    title: str, of: Callable[[Record], Any], words: Callable[[Any], str] = str, unknown: str = ""
) -> Fact:
    return Fact(of, title, words, unknown, machine=True)


FACTS: dict[str, Fact] = {
    # Tables of differences use this order: the most likely reasons for different speeds come first.
    "workload": Fact(attrgetter("workload.name"), "workload"),
    "step_fingerprint": Fact(attrgetter("workload.step_fingerprint"), "arithmetic of a step"),
    "schedule_fingerprint": Fact(attrgetter("workload.schedule_fingerprint"), "schedule"),
    "outcome": Fact(attrgetter("outcome.status"), "outcome"),
    "framework": Fact(_framework, "backend"),
    "style": Fact(attrgetter("backend.style"), "style (input path, compilation)", unknown="as is"),
    "compile_cache": Fact(attrgetter("backend.compile_cache"), "compile cache", unknown="none"),
    "machine": Fact(attrgetter("machine.name"), "machine"),
    "data": Fact(_data, "data"),
    "command": Fact(_command, "command", lambda command: shlex.join(command[0])),
    "load_before": Fact(
        attrgetter("machine.load_before"),
        "CPU load by others before the run",
        lambda share: units.percent(round(share, 1), 0),
    ),
    "caveats": Fact(attrgetter("caveats"), "caveats", _listed),
    "labels": _machine("labels", attrgetter("machine.labelled")),
    "price_per_hour": _machine("price per hour", attrgetter("price_per_hour"), units.significant),
    "computed_on": _machine("device", _computed_on, unknown=units.MISSING),
    "cpu": _machine("CPU", attrgetter("machine.cpu")),
    "usable_cores": _machine("cores", attrgetter("machine.usable_cores")),
    "cpu_quota": _machine(
        "CPU quota", attrgetter("machine.cpu_quota"), "{:g} cores".format, unknown="none"
    ),
    "cpu_governors": _machine("CPU governor", attrgetter("machine.cpu_governors"), ", ".join),
    "cpu_turbo": _machine(
        "CPU turbo", attrgetter("machine.cpu_turbo"), lambda on: "on" if on else "off"
    ),
    "memory_bytes": _machine("memory", _memory_bytes, units.bytes_),
    "gpus": _machine("GPUs", attrgetter("machine.gpus"), _listed),
    "gpu_driver": _machine("GPU driver", _gpu_driver),
    "cuda": _machine("CUDA of the driver", _cuda),
    "os": _machine("system", attrgetter("machine.os")),
    "python_version": _machine("Python", attrgetter("python.version")),
    "trainmark": _machine("trainmark", attrgetter("trainmark")),
    "precision": _machine("precision", attrgetter("backend.precision")),
    "threads_chosen": _machine("threads", _threads_chosen),
    # Tables of differences don't show these.
    "backend": Fact(attrgetter("backend.name")),
    "version": Fact(attrgetter("backend.version")),
    "protocol": Fact(attrgetter("protocol")),
    "device": Fact(attrgetter("device.id"), unknown=units.MISSING),
    "device_name": Fact(attrgetter("device.name")),
    "accelerator": Fact(_accelerator),
    "cores": Fact(_cores),
    "threads": Fact(attrgetter("threads")),
    "memory_fraction": Fact(attrgetter("memory_fraction")),
    "weights_from": Fact(attrgetter("weights_from")),
    "dataset": _dataset("name"),
    "dataset_sha256": _dataset("sha256"),
    "train_examples": _dataset("train_examples"),
    "test_examples": _dataset("test_examples"),
    "program": Fact(_program),
    "layout": Fact(_layout),
    "spread": Fact(_spread),
    "python": Fact(attrgetter("python.label"), unknown="default"),
    "executable": Fact(attrgetter("python.executable")),
    "seed": Fact(attrgetter("seed")),
    "repeat": Fact(attrgetter("repeat")),
    "round": Fact(attrgetter("round")),
    "logged": Fact(lambda record: Caveat.LOGGED_STEPS in record.caveats),
    "slices_alone": Fact(lambda record: bool(record.slices) and not record.epochs),
    "tokens": Fact(tokens_of),
    "parameters": Fact(lambda record: record.model and record.model.parameters),
}


def facts_of(record: Record, names: Iterable[str]) -> dict[str, Any]:
    """Return the values of these facts, by name."""
    return {name: FACTS[name].of(record) for name in names}


@dataclass(frozen=True)
class Key:
    """What two repeats of each other have in common; the fields are names of facts.

    A name alone can stand for different things, so the dataset includes its checksum, the device
    and machine their hardware, the workload its fingerprints.

    Args:
        machine: host name, with a number if several machines have the same name.
        instance: labels of the machine.
        device_name: name of an accelerator.
        cpu_quota: cores that can be used at a time; None without a quota.
        threads: number of CPU threads; None is the framework's default.
        memory_fraction: memory limit, 0 to 1; None for no limit.
        style, device, python, dataset, precision: None if unknown, for a command.
        weights_from: id of the record that provided the initial weights.
        program: start of the checksum of a command's script.
        layout: copies and stages of a training on several devices.
    """

    workload: str
    backend: str
    style: str | None
    device: str | None
    machine: str
    python: str | None
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
    program: str | None
    layout: str | None
    instance: str | None

    @classmethod
    def of(cls, record: Record, machine: str, instance: str | None) -> Key:
        """Return the key of ``record``, with this title and these labels of its machine."""
        given = {
            "machine": machine,
            "instance": instance,
            "device_name": FACTS["accelerator"].of(record),
        }
        names = {field.name for field in dataclasses.fields(cls)} - given.keys()
        return cls(**facts_of(record, names), **given)

    def words(self, name: str) -> str:
        """Return a field as text, even if unknown."""
        value = getattr(self, name)
        return (value is None and FACTS[name].unknown) or str(value)

    @property
    def same_work(self) -> tuple[str, str, str]:
        """Equal for groups that may be compared; one ratio never mixes workloads."""
        return self.workload, self.step_fingerprint, self.schedule_fingerprint

    def without(self, dimension: Dimension) -> tuple[object, ...]:
        """Return everything that doesn't vary along ``dimension``, to find comparable groups."""
        varies = _VARIES_WITH[dimension]
        rest = tuple(
            getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in varies
        )
        if dimension != "machine":
            return rest
        return (*rest, "accelerator" if self.device_name else self.device)


_VARIES_WITH: dict[Dimension, frozenset[str]] = {
    "device": frozenset({"device", "device_name"}),
    "backend": frozenset({"backend", "version"}),
    "style": frozenset({"style", "program"}),
    # Different machines have different devices and builds; Key.without() separates CPUs and
    # accelerators.
    "machine": frozenset(
        {
            "machine",
            "instance",
            "cpu",
            "cores",
            "cpu_quota",
            "threads",
            "device",
            "device_name",
            "version",
        }
    ),
    "python": frozenset({"python", "version"}),
}


@dataclass(frozen=True, kw_only=True)
class RunKey:
    """Equal for two runs, planned or recorded, that measure the same thing.

    The fields are names of facts.

    Args:
        repeat: number of the repeat; of a command, its round.
        logged: whether it logged steps (``--log-every``), which costs time.
        slices_alone: whether it stopped after its slices, without training to the end.
        spread: copies, stages, microbatches, averaging, weak, machines.
        command: words, directory, and checksum of the program. For a command, only this and the
            first three are set.
    """

    step_fingerprint: str
    machine: str
    repeat: int
    schedule_fingerprint: str | None = None
    dataset_sha256: str | None = None
    backend: str | None = None
    version: str | None = None
    python: str | None = None
    executable: str | None = None
    style: str | None = None
    device: str | None = None
    precision: str | None = None
    seed: int | None = None
    threads: int | None = None
    memory_fraction: float | None = None
    logged: bool = False
    slices_alone: bool = False
    weights_from: str | None = None
    spread: tuple[int | bool, ...] | None = None
    command: tuple[tuple[str, ...], str, str | None] | None = None

    @property
    def of_side(self) -> RunKey:
        """The same for all runs of a side in one study, even if their script has changed."""
        command = self.command and (*self.command[:2], None)
        return dataclasses.replace(self, repeat=0, seed=None, slices_alone=False, command=command)

    @classmethod
    def of(cls, record: Record) -> RunKey:
        """Return the key of the run of ``record``."""
        if record.process is not None:
            return cls(**facts_of(record, ("step_fingerprint", "machine", "repeat", "command")))
        return cls(**facts_of(record, (field.name for field in dataclasses.fields(cls))))


def group_to_complete(planned: Container[RunKey], records: Iterable[Record]) -> str | None:
    """Return the group of the newest of ``records`` that is a run of the plan; None if none is."""
    groups = [record.group.id for record in records if RunKey.of(record) in planned]
    return groups[-1] if groups else None
