"""A workload as a table of layers: shapes, parameters, cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from trainmark import units
from trainmark.report.table import Cell, Field, Table, TableRow, table_of
from trainmark.workload.layers import written
from trainmark.workload.losses import Loss
from trainmark.workload.model import LayerPlan, lay_out
from trainmark.workload.optimizers import Optimizer
from trainmark.workload.spec import Workload


def layer_table(workload: Workload) -> Table:
    """Return the table of the layers of ``workload``: shapes, parameters, FLOPs per example, and totals."""
    model = lay_out(workload)
    layers = table_of(
        model.layers,
        _FIELDS,
        title=f"{workload.name}: {workload.title}",
        conditions=_conditions(workload),
        notes=(
            "FLOPs per example, of matrix products and convolutions only; a multiply-add counts as two.",
            "training: forward pass, weight gradients and, except for the first layer, input gradients.",
            *_published(workload),
        ),
    )
    sums = (units.count(model.parameters), units.flops(model.forward_flops), units.flops(model.training_flops))
    first = (Cell("input"), Cell(written(model.input_shape)), *(Cell("") for _ in range(4)))
    last = (Cell("total", tone="strong"), Cell(""), Cell(""), *(Cell(each, tone="strong") for each in sums))
    return dataclasses.replace(layers, rows=(TableRow(first), *layers.rows, TableRow(last, starts_section=True)))


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
            "layers": [_layer_data(plan) for plan in model.layers],
        },
        "spec": workload.to_data(),
    }


_FIELDS: tuple[Field[LayerPlan], ...] = (
    Field("layer", lambda plan: plan.name),
    Field("output", lambda plan: written(plan.output_shape)),
    Field("kernel", lambda plan: written(plan.kernel_shape) if plan.kernel_shape else ""),
    Field("parameters", lambda plan: units.count(plan.parameters) if plan.parameters else "", "right"),
    Field("forward", lambda plan: units.flops(2 * plan.forward_macs) if plan.forward_macs else "", "right"),
    Field("training", lambda plan: units.flops(2 * plan.training_macs) if plan.training_macs else "", "right"),
)


def _layer_data(plan: LayerPlan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "kind": plan.layer.kind,
        **{name: getattr(plan, name) for name in ("input_shape", "output_shape", "kernel_shape", "parameters")},
        "forward_flops_per_example": 2 * plan.forward_macs,
        "training_flops_per_example": 2 * plan.training_macs,
    }


def _conditions(workload: Workload) -> tuple[str, ...]:
    schedule, size = workload.schedule, workload.batches.size
    batch = "the whole dataset per step" if size == "full" else f"batches of {size:,}"
    epochs = f"{schedule.epochs} epoch{'s' if schedule.epochs != 1 else ''}"
    if schedule.steps_per_epoch is not None:
        epochs += f" of {schedule.steps_per_epoch:,} steps"
    if schedule.steps is not None:
        epochs = f"{schedule.steps:,} steps"
    shuffled = f"shuffled {schedule.shuffle.replace('-', ' ')}"
    return (
        f"{workload.dataset}, {batch}, {epochs}, {shuffled}, {schedule.protocol} weights",
        f"loss: {_with_settings(workload.loss)}",
        f"optimiser: {_with_settings(workload.optimizer)}",
    )


def _with_settings(part: Loss | Optimizer) -> str:
    """Return ``adam, learning rate 0.001, beta1 0.9``: the kind and its numbers; zeros (off) are omitted."""
    return ", ".join([part.kind, *_numbers(dataclasses.asdict(part))])


def _numbers(settings: dict[str, Any], of: str = "") -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{name} ")
        elif isinstance(value, int | float) and not isinstance(value, bool) and value:
            yield f"{of}{name.replace('_', ' ')} {value:,}"


def _published(workload: Workload) -> tuple[str, ...]:
    if workload.published is None:
        return ()
    runs = ", ".join(f"{run.name!r}" for run in workload.published.runs)
    return (f"published: {runs} ({workload.published.source}).",)
