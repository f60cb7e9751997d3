"""A workload as a table of layers: shapes, parameters, cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

from trainmark import units
from trainmark.report.table import Cell, Field, Table, TableRow, table_of
from trainmark.workload.layers import written
from trainmark.workload.losses import Loss, sums
from trainmark.workload.model import LayerPlan, lay_out
from trainmark.workload.optimizers import Optimizer
from trainmark.workload.spec import Workload


def layer_table(workload: Workload) -> Table:
    """Return the table of the layers of ``workload``: shapes, parameters, FLOPs per example, and
    totals.
    """
    model = lay_out(workload)
    layers = table_of(
        _nested(model.layers),
        _FIELDS,
        title=f"{workload.name}: {workload.title}",
        conditions=_conditions(workload),
        notes=(
            "FLOPs per example, of matrix products and convolutions only; a multiply-add counts "
            "as two.",
            "training: forward pass, weight gradients and, except for the first layer, input "
            "gradients.",
            *_published(workload),
        ),
    )
    sums = (
        units.count(model.parameters),
        units.flops(model.forward_flops),
        units.flops(model.training_flops),
    )
    first = (Cell("input"), Cell(written(model.input_shape)), *(Cell("") for _ in range(4)))
    last = (
        Cell("total", tone="strong"),
        Cell(""),
        Cell(""),
        *(Cell(each, tone="strong") for each in sums),
    )
    return dataclasses.replace(
        layers, rows=(TableRow(first), *layers.rows, TableRow(last, starts_section=True))
    )


def layer_data(workload: Workload) -> dict[str, Any]:
    """Return the same for ``--json``, with the whole specification."""
    model = lay_out(workload)
    return {
        "name": workload.name,
        "title": workload.title,
        "dataset": workload.dataset,
        "step_fingerprint": workload.step_fingerprint,
        "schedule_fingerprint": workload.schedule_fingerprint,
        "model": {
            "input_shape": model.input_shape,
            "parameters": model.parameters,
            "forward_flops_per_example": model.forward_flops,
            "training_flops_per_example": model.training_flops,
            "layers": [
                {"depth": depth, **_layer_data(plan)} for depth, plan in _nested(model.layers)
            ],
        },
        "spec": workload.to_data(),
    }


def _nested(plans: Iterable[LayerPlan], depth: int = 0) -> Iterator[tuple[int, LayerPlan]]:
    """Yield each layer with how deep it lies inside others, which come before it."""
    for plan in plans:
        yield depth, plan
        yield from _nested((*plan.body, *plan.shortcut), depth + 1)


def _flops(plan: LayerPlan, macs: int) -> str:
    return units.flops(2 * macs) if macs and not plan.body else ""


_FIELDS: tuple[Field[tuple[int, LayerPlan]], ...] = (
    Field("layer", lambda of: "  " * of[0] + of[1].name),
    Field("output", lambda of: written(of[1].output_shape)),
    Field("kernel", lambda of: written(of[1].kernel_shape) if of[1].kernel_shape else ""),
    Field(
        "parameters", lambda of: units.count(of[1].parameters) if of[1].parameters else "", "right"
    ),
    Field("forward", lambda of: _flops(of[1], of[1].forward_macs), "right"),
    Field("training", lambda of: _flops(of[1], of[1].training_macs), "right"),
)


def _layer_data(plan: LayerPlan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "kind": plan.layer.kind,
        **{
            name: getattr(plan, name)
            for name in ("input_shape", "output_shape", "kernel_shape", "parameters")
        },
        "forward_flops_per_example": 2 * plan.forward_macs,
        "training_flops_per_example": 2 * plan.training_macs,
    }


def _conditions(workload: Workload) -> tuple[str, ...]:
    schedule = workload.schedule
    size = workload.batches.size
    batch = "the whole dataset per step" if size == "full" else f"batches of {size:,}"
    epochs = f"{schedule.epochs} epoch{'s' if schedule.epochs != 1 else ''}"
    if schedule.steps_per_epoch is not None:
        epochs += f" of {schedule.steps_per_epoch:,} steps"
    if schedule.steps is not None:
        epochs = f"{schedule.steps:,} steps"
    summed = ", summed over the batch" if sums(workload.loss) else ""
    shuffled = f"shuffled {schedule.shuffle.replace('-', ' ')}"
    return (
        f"{workload.dataset}, {batch}, {epochs}, {shuffled}, {schedule.protocol} weights",
        f"loss: {_with_settings(workload.loss)}{summed}",
        f"optimiser: {_with_settings(workload.optimizer)}",
    )


def _with_settings(part: Loss | Optimizer) -> str:
    """Return ``adam, learning rate 0.001, beta1 0.9``: the kind and its numbers; zeros (off) are
    omitted.
    """
    return ", ".join([part.kind, *_numbers(dataclasses.asdict(part))])


def _numbers(settings: dict[str, Any], of: str = "") -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{name} ")
        elif isinstance(value, tuple) and value:
            parts = (each.values() if isinstance(each, dict) else each for each in value)
            yield " ".join((f"{of}{name}", *(f"({', '.join(map(str, each))})" for each in parts)))
        elif value is True and name == "nesterov":
            yield name
        elif isinstance(value, int | float) and not isinstance(value, bool) and value:
            yield f"{of}{name.replace('_', ' ')} {value:,}"


def _published(workload: Workload) -> tuple[str, ...]:
    if workload.published is None:
        return ()
    runs = ", ".join(f"{run.name!r}" for run in workload.published.runs)
    return (f"published: {runs} ({workload.published.source}).",)
