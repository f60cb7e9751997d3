"""Tables of one record: outcome, epochs, final figures and conditions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainmark import units
from trainmark.analysis.efficiency import Efficiency, efficiency, peaks_by_place
from trainmark.analysis.statistics import median
from trainmark.analysis.summary import perplexity, summarize
from trainmark.record.caveats import Caveat
from trainmark.record.facts import tokens_of
from trainmark.record.growth import growth_of, memory_growth_of
from trainmark.record.observed import Observed
from trainmark.record.record import Energy, Epoch, Final, Process, Record, Samples
from trainmark.report.conditions import share_of_peak, when_measured
from trainmark.report.growth import growth_sentence, memory_sentences
from trainmark.report.labels import side_of
from trainmark.report.pace import pace, per_example
from trainmark.report.table import Field, Table, table_of, text_of, toned
from trainmark.workload.grid import title

_FIGURES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")
_CHOSEN_BY = {
    "measured": "the fastest of the measured candidates",
    "untuned": "untuned: no other candidate was measured for this workload and precision",
    "default": "the default on this device and in this layout",
}
_FIGURES_OF_TEXT = ("train_loss", "test_loss", "test_perplexity")


class _EpochRow(NamedTuple):
    number: int
    epoch: Epoch


class _Total(NamedTuple):
    """A row of the totals: the name of a figure, its value with unit, and what it covers."""

    figure: str
    value: str
    about: str


def record_tables(record: Record) -> list[Table]:
    """Return the tables of the epochs, with outcome and conditions, and of the final figures."""
    return [_epochs_table(record), _totals_table(record)]


def _figures(record: Record) -> tuple[str, ...]:
    return _FIGURES_OF_TEXT if tokens_of(record) else _FIGURES


def _epochs_table(record: Record) -> Table:
    count, unit = per_example(record)
    which = (
        f"{record.workload.name}, {record.backend.name} {record.backend.style} on "
        f"{record.device.id}"
    )
    return table_of(
        (_EpochRow(number, epoch) for number, epoch in enumerate(record.epochs, 1)),
        (
            Field("epoch", text_of("number"), "right"),
            Field("time", text_of("epoch.seconds", units.seconds), "right"),
            Field(unit, lambda row: _pace(row.epoch, count), "right"),
            *map(_figure, _figures(record)),
            Field("evaluation", text_of("epoch.evaluation_seconds", units.seconds), "right"),
        ),
        title=f"{side_of(record) if record.process else which}: {record.outcome.status}",
        conditions=(*_outcome(record), *_conditions(record)),
        notes=() if record.epochs else ("No epoch was completed.",),
    )


def _pace(epoch: Epoch, count: int) -> str:
    pace = count * epoch.examples / epoch.seconds if epoch.examples and epoch.seconds > 0 else None
    return units.rate(pace)


def _figure(figure: str) -> Field[_EpochRow]:
    title = figure.replace("_", " ").replace("accuracy", "acc.")
    return Field(title, lambda row: _shown(figure, row.epoch), "right")


def _step(settings: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield how PyTorch's ``fast`` ran a step, why, and what failed."""
    if "step" in settings:
        by = settings.get("step_chosen_by")
        reason = _CHOSEN_BY.get(str(by), f"chosen by {by}")
        if "not_compiled" in settings:
            reason = "the fallback, since the chosen step could not be compiled"
        yield "step", str(settings["step"]), reason
    for setting, what in (("not_compiled", "not compiled"), ("not_captured", "not captured")):
        if setting in settings:
            yield "step", what, str(settings[setting])


def _totals_table(record: Record) -> Table:
    """Return the figures of a whole run; those that are unknown have no row."""
    final = record.final
    run = summarize(record)
    energy = record.energy or Energy(None, None)
    single = Caveat.ONE_EPOCH in run.caveats
    figures = [
        (each.replace("_", " "), _shown(each, final), _how(record, each))
        for each in _figures(record)
    ]
    rows: list[tuple[str, str, str]] = [
        *(_process(record.process) if record.process else ()),
        *(_observed(record.observed) if record.observed else ()),
        (
            "training",
            units.seconds(final.training_seconds),
            "sum of the epochs, without evaluation",
        ),
        (
            "epoch",
            units.seconds(run.epoch_seconds),
            "the only whole one" if single else "median of the steady epochs",
        ),
        (
            "throughput",
            pace(run.samples_per_second, record),
            "only whole epoch" if single else "steady epoch",
        ),
        ("setup", units.seconds(record.setup_seconds), "before the first epoch"),
        ("compile", units.seconds(record.compile_seconds), f"cache {record.backend.compile_cache}"),
        *_step(record.backend.settings),
        (
            "loss before step 0",
            units.loss(record.before.test_loss if record.before else None),
            "test loss",
        ),
        *figures,
        ("time to target", units.seconds(final.time_to_target_seconds), ""),
        ("host memory", units.bytes_(record.memory.host_peak_bytes), "peak"),
        ("device memory", units.bytes_(record.memory.device_peak_bytes), "peak"),
        *(_seen(record.samples) if record.samples else ()),
        ("energy", units.joules(energy.joules), energy.source or ""),
        *_against_limit(efficiency(record, run.samples_per_second, peaks_by_place([record]))),
    ]
    totals = [_Total(*row) for row in rows]
    return table_of(
        [total for total in totals if total.value != units.MISSING],
        (
            Field("figure", toned("figure", "strong")),
            Field("value", text_of("value"), "right"),
            Field("", toned("about", "dim")),
        ),
        title="Totals",
        notes=tuple(
            f"{caveat.value}: {caveat.meaning}" for caveat in Caveat if caveat in run.caveats
        ),
    )


def _outcome(record: Record) -> Iterator[str]:
    outcome = record.outcome
    if outcome.reason:
        yield f"reason: {outcome.reason}"
    if outcome.step is not None:
        yield (
            f"stopped at step {outcome.step:,}; the loss before it was "
            f"{units.loss(outcome.loss_before)}"
        )
    if outcome.stderr_tail:
        yield f"end of stderr:\n{outcome.stderr_tail.rstrip()}"


def _conditions(record: Record) -> Iterator[str]:
    machine = record.machine
    device = record.device
    dataset = record.dataset
    backend = record.backend
    threads = "default threads" if record.threads is None else units.many(record.threads, "thread")
    cores = "cores not known"
    if machine.usable_cores:
        cores = units.many(machine.usable_cores, "usable core")
    memory = units.bytes_(machine.memory_bytes)
    device_memory = units.bytes_(device.memory_bytes)
    yield f"record {record.id}, {record.created}"
    if record.process is not None:
        yield f"command: {shlex.join(record.process.argv)}"
        yield f"in {record.process.directory}"
        if record.process.odd:
            yield (
                f"reports not understood ({record.process.left_out or 0:,} in total): "
                f"{'; '.join(record.process.odd)}"
            )
        yield (
            "not known of a command: data, network, precision, threads, versions that it did "
            "not report"
        )
    if dataset is not None:
        yield (
            f"{dataset.name}, {dataset.train_examples:,} training and "
            f"{dataset.test_examples:,} test examples"
        )
    if record.model is not None:
        flops = units.flops(record.model.training_flops_per_example)
        yield f"{units.count(record.model.parameters, 'parameters')}, {flops} per training example"
        yield (
            f"{backend.name} {backend.version or '(version not known)'}, {backend.precision}, "
            f"{threads}"
        )
    seed = "seed not known" if record.seed is None else f"seed {record.seed}"
    weights = "" if record.process else f", {record.protocol} weights"
    yield f"{seed}, repeat {record.repeat}, round {record.round}{weights}"
    if record.group.values is not None:
        yield f"trial {record.group.trial} of a sweep: {title(record.group.values)}"
    yield f"{machine.name}, {machine.cpu or 'CPU not known'}, {cores}, {memory}, {machine.os}"
    if machine.labelled:
        yield f"labels: {machine.labelled}"
    if device.kind == "accelerator":
        yield f"{device.id}: {device.name or 'name not known'}, {device_memory}"
    if record.process is None:
        version = record.python.version or "version not known"
        yield f"python {record.python.label}, {version}, {record.python.executable}"
    yield f"trainmark {record.trainmark or '(version not known)'}: {record.command}"


def _how(record: Record, figure: str) -> str:
    if figure.startswith("test") or record.metrics is None:
        return ""
    sampled = record.workload.view.metrics.sample
    if record.metrics.train == "running":
        how = "mean over the last epoch's batches"
    elif record.metrics.train == "exact" and sampled:
        how = "of random batches"
    else:
        how = "of the whole training set"
    return f"{how}, with L2" if figure == "train_loss" and record.metrics.loss_includes_l2 else how


def _shown(figure: str, of: Epoch | Final) -> str:
    if figure == "test_perplexity":
        value = perplexity(of.test_loss)
        return units.MISSING if value is None else units.significant(value)
    value = getattr(of, figure)
    return units.percent(value) if figure.endswith("accuracy") else units.loss(value)


def _process(process: Process) -> Iterator[tuple[str, str, str]]:
    """Yield the figures of a whole command."""
    yield "whole command", units.seconds(process.seconds), "from start to end"
    if process.user_seconds is not None and process.system_seconds is not None:
        system = units.seconds(process.system_seconds)
        yield (
            "CPU time",
            units.seconds(process.user_seconds + process.system_seconds),
            f"{system} of it in the kernel",
        )


_OBSERVED_PARTS = (
    ("loader_wait_seconds", "loader wait", "loader"),
    ("forward_seconds", "forward and loss", "forward"),
    ("backward_seconds", "backward", "backward"),
    ("optimizer_seconds", "optimizer", "optimizer"),
    ("saving_seconds", "saving", "save"),
    ("sync_seconds", "sync", ""),
    ("no_grad_seconds", "without gradients", "no_grad"),
    ("between_seconds", "outside of the jitted step", ""),
    ("compile_seconds", "compiling", "compile"),
)
"""The observed parts of a step: the field, its name, and the place in the script, if any."""


def _observed(seen: Observed) -> Iterator[tuple[str, str, str]]:
    """Yield what the observer saw of the steps of a command."""
    yield (
        "steps",
        f"{seen.steps:,}",
        "the first one is not timed" + ("; ended early" if seen.ended_early else ""),
    )
    yield (
        "step",
        units.seconds(seen.seconds / max(seen.steps - 1, 1) or None),
        "mean, with evaluation" if seen.evaluation_in_steps_seconds else "mean, without evaluation",
    )
    grows = growth_of(seen)
    if grows is not None:
        yield (
            "growth",
            f"{units.seconds(grows.each)} per step",
            growth_sentence(grows, last=seen.planned_steps),
        )
    memory = memory_growth_of(seen)
    sentences = memory_sentences(memory, seen.planned_steps)
    for (name, found), sentence in zip(memory.items(), sentences, strict=True):
        yield f"memory growth, {name}", f"{units.bytes_(found.each)} per step", sentence
    for name, count in (("examples", seen.examples_per_step), ("tokens", seen.tokens_per_step)):
        why = seen.unknown.get(f"{name}_per_step")
        if count is not None or why:
            shown = units.MISSING if count is None else f"{count:,.4g}"
            yield f"{name} per step", shown, why or seen.places.get("loader", "")
    if seen.ranks > 1:
        yield "ranks", f"{seen.ranks:,}", "examples and losses are those of rank 0"
    if len(seen.training_starts) > 1:
        yield "trainings", f"{len(seen.training_starts):,}", "in one process"
    for field, name, place in _OBSERVED_PARTS:
        seconds = getattr(seen, field)
        if seconds is not None:
            yield name, units.seconds(seconds), seen.places.get(place, "")
    if seen.evaluations:
        often = f"{units.many(seen.evaluations, 'time')} {seen.places.get('evaluation', '')}"
        yield "evaluation", units.seconds(seen.evaluation_seconds), often
    if seen.losses:
        yield (
            "step loss",
            units.loss(seen.losses[-1]),
            f"the last one that was kept; the first one: {units.loss(seen.losses[0])}",
        )


def _seen(samples: Samples) -> Iterator[tuple[str, str, str]]:
    """Yield the figures sampled from outside, over the whole run."""
    tree = median(samples.tree_cpu_percent or ())
    resident = [size for size in samples.tree_resident_bytes or () if size is not None]
    note = (
        f"{units.many(len(samples.t), 'sample')}, every {units.seconds(samples.interval_seconds)}"
    )
    if tree is not None:
        yield "CPU", f"{tree:.0f} %", f"median, 100 per core; {note}"
    if resident:
        yield "memory", units.bytes_(max(resident)), "peak resident memory of all its processes"
    for number in range(max((len(line) for line in samples.gpu_percent or ()), default=0)):
        busy = median(line[number] for line in samples.gpu_percent or () if number < len(line))
        if busy is not None:
            yield f"GPU {number}", f"{busy:.0f} %", "median share of time with a kernel running"


def _against_limit(known: Efficiency | None) -> Iterator[tuple[str, str, str]]:
    if known is None:
        return
    peak = f"{units.flops(known.peak_flops_per_second)}/s"
    yield (
        "achieved",
        f"{units.flops(known.flops_per_second)}/s",
        "in the specified matrix products and convolutions",
    )
    if known.nanogpt_mfu is not None:
        formula = "(6N + 12·L·H·Q·T) FLOP per token, of the same peak"
        yield "MFU, nanoGPT", share_of_peak(known, known.nanogpt_mfu), formula
    yield (
        "MFU",
        share_of_peak(known),
        f"of {peak} in matrix products of {known.measured_by}, {when_measured(known)}",
    )
    if known.datasheet_flops_per_second:
        promised = f"{units.flops(known.datasheet_flops_per_second)}/s"
        yield (
            "of datasheet",
            units.percent(known.flops_per_second / known.datasheet_flops_per_second, 1),
            promised,
        )
    yield (
        "intensity",
        f"{units.significant(known.intensity)} FLOP/B",
        "FLOPs per byte that a step must move",
    )
    if known.roofline_seconds is not None and known.gap is not None:
        step = units.seconds(known.roofline_seconds)
        yield "roofline", "≤ " * known.disturbed + step, "a step limited only by these peaks"
        yield (
            "gap",
            "≥ " * known.disturbed + units.ratio(known.gap),
            "step time as a multiple of that",
        )
