"""Rows as a data frame of pandas or polars, imported on demand."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Mapping
from typing import Any

from trainmark.errors import NotInstalled, UnknownName
from trainmark.report.table import Scalar

LIBRARIES = ("pandas", "polars")


def frame(rows: Iterable[Mapping[str, Scalar]], library: str | None = None) -> Any:
    """Return a data frame with one column per key.

    Args:
        library: ``pandas`` or ``polars``; the first of them that is installed, if not given.

    Raises:
        UnknownName: ``library`` is neither.
        NotInstalled: the library is not installed.
    """
    if library is not None and library not in LIBRARIES:
        raise UnknownName("data frame library", library, LIBRARIES)
    wanted = LIBRARIES if library is None else (library,)
    found = next((name for name in wanted if importlib.util.find_spec(name) is not None), None)
    if found is None:
        names = " or ".join(wanted)
        raise NotInstalled(
            f"a data frame needs {names}", found="neither", fix=f"pip install {wanted[0]}"
        )
    records = [dict(row) for row in rows]
    options = {"infer_schema_length": None} if found == "polars" else {}
    return importlib.import_module(found).DataFrame(records, **options)
