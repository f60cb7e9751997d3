"""How MXNet computes in each precision: all arrays have one type."""

from __future__ import annotations

from trainmark.workload.precision import Precision

DTYPES: dict[Precision, str] = {"fp32": "float32", "fp64": "float64"}
