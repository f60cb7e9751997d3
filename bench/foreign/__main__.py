"""The start of ``python bench/foreign``, which runs from a checkout."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts this folder first on the path. Its modules are a package, so its parent belongs
    # there instead.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

    from foreign.command import main

    sys.exit(main())
