"""Every workload × backend × style on a CUDA device: records and a table in one folder, in under 8 minutes.

    python bench/gpu.py FOLDER [--device cuda:0] [--backend torch,jax] [--repeats 3] [--limit 450]

Workloads come in the order of their cost. Each is one `trainmark run` that gets an equal share of the time that is
left; what does not fit is recorded as interrupted, not left out in silence. mnist-mlp128 and mnist-mlp512 run their
published 20 epochs, so that their seconds can be read off. FOLDER gets the records and README.md with the table. The
records tell the machine, so the folder can be carried home and compared there. Needs TRAINMARK_DATA.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

# Options that make a run long enough to read and short enough to wait for.
COURSES = {
    "mnist-mlp128": ("--epochs", "20"),
    "mnist-mlp512": ("--epochs", "20"),
    "mnist-mlp32": ("--steps", "200"),
    "mnist-cnn": ("--epochs", "5"),
    "cifar10-cnn": ("--steps", "230"),
}
FRAMEWORKS = {"torch": "torch", "jax": "jax", "keras": "tensorflow"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--backend", default=",".join(n for n, module in FRAMEWORKS.items() if find_spec(module)))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=450, metavar="SECONDS", help="for everything together")
    options = parser.parse_args()
    end = time.monotonic() + options.limit
    failures = 0
    for place, (workload, course) in enumerate(COURSES.items()):
        share = (end - time.monotonic()) / (len(COURSES) - place)
        done = _trainmark(
            "run", workload, *course, "--backend", options.backend, "--device", options.device,
            "--repeats", str(options.repeats), "--out", str(options.folder), seconds=share,
        )  # fmt: skip
        failures += done != 0
    table = subprocess.run(
        [sys.executable, "-m", "trainmark", "compare", str(options.folder), "--format", "markdown"],
        check=False,
        capture_output=True,
        text=True,
    )
    print(table.stdout + table.stderr)
    (options.folder / "README.md").write_text(f"# {options.device}, as `bench/gpu.py` ran it\n\n{table.stdout}")
    return 1 if failures or table.returncode else 0


def _trainmark(*arguments: str, seconds: float) -> int:
    """One command, interrupted as by Ctrl-C when its time is over, so that it still writes the record at hand."""
    process = subprocess.Popen([sys.executable, "-m", "trainmark", *arguments])
    try:
        return process.wait(max(seconds, 1))
    except subprocess.TimeoutExpired:
        print(f"bench/gpu.py: {arguments[1]} had {seconds:.0f} s and is cut short", file=sys.stderr, flush=True)
        process.terminate()
        return process.wait()


if __name__ == "__main__":
    sys.exit(main())
