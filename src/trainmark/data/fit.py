"""Check that a workload and its dataset fit together."""

from __future__ import annotations

from trainmark.data import catalog
from trainmark.data.dataset import CLASSES
from trainmark.errors import SpecError
from trainmark.workload.model import lay_out
from trainmark.workload.spec import Workload


def require_fit(workload: Workload) -> None:
    """Raise if a workload can't be trained on its dataset.

    Raises:
        UnknownName: there is no such dataset.
        SpecError: its images have another shape, or the network has fewer outputs than it has classes.
    """
    shape = catalog.find(workload.dataset).image_shape
    if shape != workload.input.shape:
        raise SpecError(
            f"the workload {workload.name!r} does not fit the dataset {workload.dataset!r}",
            expected=f"images of {' × '.join(map(str, shape))} in input.shape",
            found=" × ".join(map(str, workload.input.shape)),
        )
    if (classes := lay_out(workload).classes) < CLASSES:
        raise SpecError(
            f"the network of {workload.name!r} has too few outputs",
            expected=f"one value for each of the {CLASSES} classes of {workload.dataset}",
            found=str(classes),
        )
