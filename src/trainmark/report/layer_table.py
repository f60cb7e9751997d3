"""A workload as a table of layers: shapes, parameters, cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from trainmark import units
from trainmark.report.table import Cell, Field, Table, TableRow, table_of, text_of
from trainmark.workload.layers import written
from trainmark.workload.losses import Loss, sums
from trainmark.workload.model import LayerPlan, lay_out
from trainmark.workload.optimizers import Optimizer
from trainmark.workload.spec import Workload


class _Nested(NamedTuple):
    """A layer, with how deep it lies inside others."""

    depth: int
    plan: LayerPlan


def layer_table(workload: Workload) -> Table:
    """Return the table of a workload's layers: shapes, parameters, FLOPs per example, totals."""
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


def _nested(plans: Iterable[LayerPlan], depth: int = 0) -> Iterator[_Nested]:
    """Yield each layer; those around it come before it."""
    for plan in plans:
        yield _Nested(depth, plan)
        yield from _nested((*plan.body, *plan.shortcut), depth + 1)


def _indented(layer: _Nested) -> str:
    return "  " * layer.depth + layer.plan.name


def _kernel(plan: LayerPlan) -> str:
    return written(plan.kernel_shape) if plan.kernel_shape else ""


def _parameters(plan: LayerPlan) -> str:
    return units.count(plan.parameters) if plan.parameters else ""


def _forward(plan: LayerPlan) -> str:
    return _flops(plan, plan.forward_macs)


def _training(plan: LayerPlan) -> str:
    return _flops(plan, plan.training_macs)


def _flops(plan: LayerPlan, macs: int) -> str:
    """Return the FLOPs; empty for a layer that contains others, which have separate rows."""
    return units.flops(2 * macs) if macs and not plan.body else ""


_FIELDS: tuple[Field[_Nested], ...] = (
    Field("layer", _indented),
    Field("output", text_of("plan.output_shape", written)),
    Field("kernel", text_of("plan", _kernel)),
    Field("parameters", text_of("plan", _parameters), "right"),
    Field("forward", text_of("plan", _forward), "right"),
    Field("training", text_of("plan", _training), "right"),
)


def _layer_data(plan: LayerPlan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "kind": plan.layer.kind,
        "input_shape": plan.input_shape,
        "output_shape": plan.output_shape,
        "kernel_shape": plan.kernel_shape,
        "parameters": plan.parameters,
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
    """Return the kind and its numbers that aren't 0, as ``adam, learning rate 0.001``."""
    return ", ".join([part.kind, *_numbers(dataclasses.asdict(part))])


def _numbers(settings: dict[str, Any], of: str = "") -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{name} ")
        elif isinstance(value, tuple) and value:
            parts = (each.values() if isinstance(each, dict) else each for each in value)
            listed = (f"({', '.join(map(str, part))})" for part in parts)
            yield " ".join((f"{of}{name}", *listed))
        elif value is True and name == "nesterov":
            yield name
        elif isinstance(value, int | float) and not isinstance(value, bool) and value:
            yield f"{of}{name.replace('_', ' ')} {value:,}"


def _published(workload: Workload) -> tuple[str, ...]:
    if workload.published is None:
        return ()
    runs = ", ".join(f"{run.name!r}" for run in workload.published.runs)
    return (f"published: {runs} ({workload.published.source}).",)
