"""The tests that every backend must pass, to be subclassed once for each of its styles.

>>> from trainmark_conformance import BackendConformance
>>> class TestTorchFast(BackendConformance):
...     backend, style = "torch", "fast"

Each test gives a small training to the backend and to the oracle, which is the NumPy backend in float64, and compares.
A backend that says it lacks a layer, loss or optimiser skips what needs it, and so does one that is not installed or
does not see the device. Needs pytest, NumPy and the framework.
"""

import pytest

_PARTS = ("suite", "arithmetic", "batches", "chance", "contract", "parts")
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))  # before any of them is imported

from trainmark_conformance.arithmetic import ArithmeticConformance  # noqa: E402
from trainmark_conformance.batches import BatchConformance  # noqa: E402
from trainmark_conformance.chance import ChanceConformance  # noqa: E402
from trainmark_conformance.contract import ContractConformance  # noqa: E402
from trainmark_conformance.parts import PartsConformance  # noqa: E402

__all__ = ["BackendConformance"]


class BackendConformance(
    ArithmeticConformance, BatchConformance, ChanceConformance, ContractConformance, PartsConformance
):
    """All of them; a subclass names ``backend`` and, where they differ, ``style``, ``device`` and ``precision``."""
