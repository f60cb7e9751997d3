from __future__ import annotations

import numpy as np
import pytest

from trainmark.data.dataset import Split


def test_shared_arrays_are_read_only() -> None:
    split = Split(np.zeros((2, 28, 28, 1), np.uint8), np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        split.images[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        split.labels[0] = 1
    assert len(split) == 2
