"""What identifies a run, planned or recorded: ``--resume`` repeats no run whose key has a record."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from trainmark.record.caveats import Caveat
from trainmark.record.record import Record


@dataclass(frozen=True, kw_only=True)
class RunKey:
    """Equal for two runs that measure the same thing.

    Args:
        step, schedule: fingerprints of the workload; a command has only the first.
        data: digest of the dataset.
        label, executable: of the interpreter.
        repeat: of the run; of a command its round.
        logged: whether it printed steps (``--log-every``), which costs time.
        spread: copies, stages, microbatches, averaging, weak, machines.
        command: words, directory, and digest of the program.
    """

    step: str
    machine: str
    repeat: int
    schedule: str | None = None
    data: str | None = None
    backend: str | None = None
    version: str | None = None
    label: str | None = None
    executable: str | None = None
    style: str | None = None
    device: str | None = None
    precision: str | None = None
    seed: int | None = None
    threads: int | None = None
    memory_fraction: float | None = None
    logged: bool = False
    weights_from: str | None = None
    nudge: int | None = None
    spread: tuple[int | bool, ...] | None = None
    command: tuple[tuple[str, ...], str, str | None] | None = None

    @classmethod
    def of(cls, record: Record) -> RunKey:
        """The key of the run that left ``record``."""
        step, machine, process, group = (
            record.workload.step_fingerprint,
            record.machine.name,
            record.process,
            record.group,
        )
        if process is not None:
            command = (tuple(process.argv), process.directory, process.program_sha256)
            return cls(step=step, machine=machine, repeat=record.round, command=command)
        spread = group.spread
        return cls(
            step=step,
            machine=machine,
            repeat=record.repeat,
            schedule=record.workload.schedule_fingerprint,
            data=record.dataset.sha256 if record.dataset else None,
            backend=record.backend.name,
            version=record.backend.version,
            label=record.python.label,
            executable=record.python.executable,
            style=record.backend.style,
            device=record.device.id,
            precision=record.backend.precision,
            seed=record.seed,
            threads=record.threads,
            memory_fraction=record.memory_fraction,
            logged=Caveat.LOGGED_STEPS in record.caveats,
            weights_from=record.weights_from,
            nudge=group.trial if group.kind != "sweep" else None,
            spread=(spread.data, spread.pipeline, spread.microbatches, spread.all_reduce, spread.weak, spread.nodes)
            if spread
            else None,
        )


def group_to_complete(planned: Container[RunKey], records: Iterable[Record]) -> str | None:
    """The group of the newest of ``records`` that is a run of the plan; None where none is."""
    groups = [record.group.id for record in records if RunKey.of(record) in planned]
    return groups[-1] if groups else None
