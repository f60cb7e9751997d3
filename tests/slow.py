"""Cases that take long and add little to the others; ``.ci/nightly`` runs them."""

from __future__ import annotations

from typing import Any

import pytest


def slow(*values: Any) -> Any:
    """Mark one case of ``parametrize`` to run at night only."""
    return pytest.param(*values, marks=pytest.mark.slow)
