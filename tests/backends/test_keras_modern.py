"""Today's networks on each engine of Keras, in processes as in ``test_keras.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.test_keras import require_passed
from tests.slow import slow

INSIDE = Path(__file__).with_name("keras_modern_inside.py")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("entry", ["keras", slow("keras:torch"), slow("keras:jax")])
def test_inside_a_process_of_its_own(entry: str) -> None:
    require_passed(entry, INSIDE)
