"""Which share of a step is unexplained, for every workload and framework?

    python bench/unexplained.py [--workload W,...] [--backend torch,jax,keras] [--seconds 50]

It runs `trainmark explain` on the CPU, one after the other, and prints one line each. It needs
TRAINMARK_DATA and a quiet machine, and takes one to eight minutes each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from trainmark.workload import catalog


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", default=",".join(catalog.names()))
    parser.add_argument("--backend", default="torch,jax,keras")
    parser.add_argument("--seconds", default="50")
    options = parser.parse_args()
    for workload in options.workload.split(","):
        for backend in options.backend.split(","):
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "trainmark",
                    "explain",
                    workload,
                    "--backend",
                    backend,
                    "--device",
                    "cpu",
                    "--seconds",
                    options.seconds,
                    "--json",
                ],
                check=True,
                capture_output=True,
                text=True,
            )
            print(line(json.loads(done.stdout)), flush=True)


def line(found: dict[str, Any]) -> str:
    """Return the answer as a line."""
    shares = (
        f"{each['cause']} {100 * each['share']:.1f}"
        for each in found["shares"]
        if not each["on_top"]
    )
    interval = f"[{100 * found['unexplained_low']:.1f}, {100 * found['unexplained_high']:.1f}]"
    return (
        f"{found['workload']} {found['backend']}: unexplained {100 * found['unexplained']:.1f} % "
        f"{interval} of "
        f"{1e3 * found['step_seconds']:.3f} ms, {len(found['rounds'])} rounds; {', '.join(shares)}"
    )


if __name__ == "__main__":
    main()
