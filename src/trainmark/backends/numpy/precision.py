"""How NumPy computes in each precision: all arrays have one type."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainmark.workload.precision import Precision

DTYPES: dict[Precision, Any] = {"fp32": np.float32, "fp64": np.float64}
