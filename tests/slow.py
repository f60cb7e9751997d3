"""Cases that take long and tell little that the others don't; ``.ci/nightly`` runs them."""

from __future__ import annotations

from typing import Any

import pytest


def slow(*values: Any) -> Any:
    """One case of ``parametrize``, for the night."""
    return pytest.param(*values, marks=pytest.mark.slow)
