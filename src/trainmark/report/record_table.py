"""One record, readable: how it ended, its epochs, where it arrived, and under which conditions."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark import units
from trainmark.analysis.summary import summarize
from trainmark.record.record import Epoch, Record
from trainmark.report.table import Cell, Column, Row, Table

_FIGURES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")


def record_tables(record: Record) -> list[Table]:
    """The record's epochs under its outcome and conditions, and its final figures with its caveats."""
    return [_epochs_table(record), _final_table(record)]


def _epochs_table(record: Record) -> Table:
    return Table(
        title=f"{record.workload.name}, {record.backend.name} {record.backend.style} on {record.device.id}: "
        f"{record.outcome.status}",
        conditions=(*_outcome(record), *_conditions(record)),
        columns=(
            Column("epoch", "right"),
            Column("time", "right"),
            Column("samples/s", "right"),
            *(Column(figure.replace("_", " ").replace("accuracy", "acc."), "right") for figure in _FIGURES),
            Column("evaluation", "right"),
        ),
        rows=tuple(Row(_epoch_cells(number, epoch)) for number, epoch in enumerate(record.epochs, 1)),
        notes=() if record.epochs else ("No epoch was completed.",),
    )


def _epoch_cells(number: int, epoch: Epoch) -> tuple[Cell, ...]:
    pace = epoch.examples / epoch.seconds if epoch.seconds > 0 else None
    return (
        Cell(str(number)),
        Cell(units.seconds(epoch.seconds)),
        Cell(units.rate(pace, "").strip()),
        *(Cell(_shown(figure, getattr(epoch, figure))) for figure in _FIGURES),
        Cell(units.seconds(epoch.evaluation_seconds)),
    )


def _final_table(record: Record) -> Table:
    final, run = record.final, summarize(record)
    pairs = [
        ("training", units.seconds(final.training_seconds), "the sum of the epochs, evaluation left out"),
        ("epoch", units.seconds(run.epoch_seconds), "the median of the steady epochs"),
        ("throughput", units.rate(run.samples_per_second, "samples/s"), "in a steady epoch"),
        ("setup", units.seconds(record.setup_seconds), "before the first epoch"),
        ("compile", units.seconds(record.compile_seconds), f"cache {record.backend.compile_cache}"),
        *(
            (figure.replace("_", " "), _shown(figure, getattr(final, figure)), _how(record, figure))
            for figure in _FIGURES
        ),
        ("time to target", units.seconds(final.time_to_target_seconds), ""),
        ("host memory", units.bytes_(record.memory.host_peak_bytes), "highest"),
        ("device memory", units.bytes_(record.memory.device_peak_bytes), "highest"),
        ("energy", _joules(record), (record.energy and record.energy.source) or ""),
    ]
    return Table(
        title="In all",
        conditions=(),
        columns=(Column("figure"), Column("value", "right"), Column("")),
        rows=tuple(
            Row((Cell(name, tone="strong"), Cell(value), Cell(note, tone="dim")))
            for name, value, note in pairs
            if value != units.MISSING
        ),
        notes=tuple(f"{caveat.value}: {caveat.meaning}" for caveat in record.caveats),
    )


def _outcome(record: Record) -> Iterator[str]:
    outcome = record.outcome
    if outcome.reason:
        yield f"reason: {outcome.reason}"
    if outcome.step is not None:
        yield f"broke off at step {outcome.step:,}; the loss before it was {units.loss(outcome.loss_before)}"
    if outcome.stderr_tail:
        yield f"the end of its stderr:\n{outcome.stderr_tail.rstrip()}"


def _conditions(record: Record) -> Iterator[str]:
    machine, device, dataset, backend = record.machine, record.device, record.dataset, record.backend
    threads = "default threads" if record.threads is None else units.count(record.threads, "threads")
    cores = units.count(machine.usable_cores, "usable cores") if machine.usable_cores else "cores not known"
    memory, device_memory = units.bytes_(machine.memory_bytes), units.bytes_(device.memory_bytes)
    flops = units.flops(record.model.training_flops_per_example)
    yield f"record {record.id}, {record.created}"
    yield f"{dataset.name}, {dataset.train_examples:,} training and {dataset.test_examples:,} test examples"
    yield f"{units.count(record.model.parameters, 'parameters')}, {flops} training an example"
    yield f"{backend.name} {backend.version or '(version not known)'}, {backend.precision}, {threads}"
    yield f"seed {record.seed}, repeat {record.repeat}, round {record.round}, {record.protocol} weights"
    yield f"{machine.name}, {machine.cpu or 'CPU not known'}, {cores}, {memory}, {machine.os}"
    if device.kind == "accelerator":
        yield f"{device.id}: {device.name or 'name not known'}, {device_memory}"
    yield f"python {record.python.label}, {record.python.version or 'version not known'}, {record.python.executable}"
    yield f"command: {record.command}"


def _how(record: Record, figure: str) -> str:
    if figure.startswith("test"):
        return ""
    how = "mean over the last epoch's batches" if record.metrics.train == "running" else "of the whole training set"
    return f"{how}, with L2" if figure == "train_loss" and record.metrics.loss_includes_l2 else how


def _shown(figure: str, value: float | None) -> str:
    return units.percent(value) if figure.endswith("accuracy") else units.loss(value)


def _joules(record: Record) -> str:
    if record.energy is None or record.energy.joules is None:
        return units.MISSING
    return f"{units.significant(record.energy.joules)} J"
