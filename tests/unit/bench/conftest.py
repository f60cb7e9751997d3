"""The scripts of `bench/` import each other as scripts do: from the folder they lie in."""

from __future__ import annotations

import sys
from pathlib import Path

BENCH = Path(__file__).parents[3] / "bench"
sys.path.insert(0, str(BENCH))
