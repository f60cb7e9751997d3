"""Optional libraries, for charts, pages and exports."""

from __future__ import annotations

import importlib.util
from typing import Literal

from trainmark.errors import NotInstalled

Extra = Literal["report", "frame", "tensorboard", "mlflow"]

_NEEDED: dict[Extra, tuple[str, dict[str, str]]] = {
    "report": (
        "charts and pages",
        {"altair": "altair", "vl_convert": "vl-convert-python", "jinja2": "jinja2"},
    ),
    "frame": ("Parquet files", {"polars": "polars"}),
    "tensorboard": ("TensorBoard event files", {"tensorboardX": "tensorboardX"}),
    "mlflow": ("MLflow runs", {"mlflow": "mlflow-skinny"}),
}


def require_extras(extra: Extra) -> None:
    """Raise :class:`~trainmark.errors.NotInstalled` unless the packages of ``extra`` are there."""
    what, packages = _NEEDED[extra]
    absent = [
        package for module, package in packages.items() if importlib.util.find_spec(module) is None
    ]
    if absent:
        raise NotInstalled(
            f"{what} need additional packages",
            expected=", ".join(packages.values()),
            found=f"no {', no '.join(absent)}",
            fix=f"pip install 'trainmark[{extra}]', or in a clone: pip install '.[{extra}]'",
        )
