"""Check that a workload and its dataset fit together."""

from __future__ import annotations

import math

from trainmark.data import catalog
from trainmark.errors import SpecError
from trainmark.workload.layers import BatchNorm, TokenEmbedding, written
from trainmark.workload.model import lay_out
from trainmark.workload.spec import Workload
from trainmark.workload.tokens import Tokens


def require_fit(workload: Workload) -> None:
    """Raise if a workload can't be trained on its dataset.

    Raises:
        UnknownName: there is no such dataset.
        SpecError: its images have another shape, its text is shorter than a window, or it has more
            classes or tokens than the network has outputs.
    """
    known = catalog.find(workload.dataset)
    taken = workload.input
    misfit = f"the workload {workload.name!r} does not fit the dataset {workload.dataset!r}"
    wanted = "tokens as input"
    if known.image_shape:
        wanted = f"images of {written(known.image_shape)} in input.shape"
    found = "tokens" if isinstance(taken, Tokens) else f"images of {written(taken.shape)}"
    if (() if isinstance(taken, Tokens) else taken.shape) != known.image_shape:
        raise SpecError(misfit, expected=wanted, found=found)
    model = lay_out(workload)
    classes = len(known.classes)
    if isinstance(taken, Tokens):
        longest = min(known.examples("train"), known.examples("test")) - 1
        if taken.length > longest:
            expected = (
                f"windows of at most {longest:,} tokens in input.length, since the next "
                "token is predicted"
            )
            raise SpecError(misfit, expected=expected, found=f"{taken.length:,}")
    what = "tokens" if known.is_text else "classes"
    for plan in model.every_layer:
        if isinstance(plan.layer, TokenEmbedding) and plan.layer.vocabulary < classes:
            raise SpecError(
                f"the vocabulary of {plan.name!r} in {workload.name!r} is too small",
                expected=f"a row for each of the {classes:,} tokens of {workload.dataset}",
                found=f"{plan.layer.vocabulary:,}",
            )
    smallest = min(workload.batches.sizes(known.examples("train")), default=0)
    for plan in model.every_layer:
        if isinstance(plan.layer, BatchNorm) and smallest * math.prod(plan.input_shape[:-1]) == 1:
            raise SpecError(
                f"{plan.name!r} in {workload.name!r} can't normalise a batch of one",
                expected="at least two values per channel in every batch",
                found="a batch of 1",
                fix="Use a larger batches.size, or batches.last = 'drop'.",
            )
    if model.classes < classes:
        raise SpecError(
            f"the network of {workload.name!r} has too few outputs",
            expected=f"one value for each of the {classes:,} {what} of {workload.dataset}",
            found=f"{model.classes:,}",
        )
