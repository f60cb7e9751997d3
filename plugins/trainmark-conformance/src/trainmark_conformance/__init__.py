"""The tests that every backend must pass. Subclass them once for each style.

>>> from trainmark_conformance import BackendConformance
>>> class TestTorchFast(BackendConformance):
...     backend, style = "torch", "fast"

Each test runs a small training with the backend and with the oracle, which is the NumPy backend in
float64, and compares the results. A test is skipped if the backend does not declare what it needs,
is not installed, or does not see the device. Needs pytest, NumPy, trainmark and the framework.
"""

import pytest

_PARTS = ("suite", "arithmetic", "batches", "chance", "contract", "parts", "stepwise")
# before any of them is imported
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))

from trainmark_conformance.arithmetic import ArithmeticConformance  # noqa: E402
from trainmark_conformance.batches import BatchConformance  # noqa: E402
from trainmark_conformance.chance import ChanceConformance  # noqa: E402
from trainmark_conformance.contract import ContractConformance  # noqa: E402
from trainmark_conformance.parts import PartsConformance  # noqa: E402
from trainmark_conformance.stepwise import StepwiseConformance  # noqa: E402

__all__ = ["BackendConformance"]


class BackendConformance(
    ArithmeticConformance,
    BatchConformance,
    ChanceConformance,
    ContractConformance,
    PartsConformance,
    StepwiseConformance,
):
    """All tests. A subclass sets ``backend`` and, if they differ, ``style``, ``device`` and
    ``precision``.
    """
