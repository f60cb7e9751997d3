"""The start of ``python bench/gpu``, which runs from a checkout, without installation."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts this folder first on the path. Its modules are a package, so its parent belongs
    # there instead.
    BENCH = Path(__file__).resolve().parents[1]
    sys.path[0] = str(BENCH)
    sys.path.insert(1, str(BENCH.parent / "src"))

    from gpu.command import main

    sys.exit(main())
