"""How long `trainmark --help` takes: the median of 21 starts, each a fresh process.

python bench/startup.py
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time


def main() -> None:
    seconds = []
    for _ in range(21):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "trainmark", "--help"], check=True, capture_output=True
        )
        seconds.append(time.perf_counter() - start)
    print(
        f"trainmark --help: median {statistics.median(seconds):.3f} s, most {max(seconds):.3f} "
        f"s, n = {len(seconds)}"
    )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
