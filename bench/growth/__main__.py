"""Is a growth found where one is planted, and of which size?

    python bench/growth [--steps 1000] [--only KIND,...]

Ten trainings have steps that take 0.1 to 5 % of the first ones longer from step to step, and two
have none that do. Each runs under `trainmark measure`. It prints what was planted and what was
found; the exit code is 1 if one was not found or is wrong by a factor of two, or if there is a
growth where none was planted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from trainmark.record.growth import growth

SCRIPT = Path(__file__).resolve().parent / "train.py"
PLANTED = (
    ("list", 0.0),
    ("tensor", 0.0),
    ("list", 0.001),
    ("list", 0.01),
    ("list", 0.05),
    ("tensor", 0.001),
    ("tensor", 0.005),
    ("tensor", 0.02),
    ("graph", 0.002),
    ("graph", 0.01),
    ("memory", 0.002),
    ("memory", 0.02),
)
_FEWEST_STEPS = 300
"""Steps after which a growth has to be found."""


def main() -> int:
    """Run the trainings; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--only", default="list,tensor,graph,memory")
    options = parser.parse_args()
    kinds = options.only.split(",")
    chosen = [(kind, share) for kind, share in PLANTED if kind in kinds]
    missed = 0
    for kind, share in chosen:
        planted, found = tried(kind, share, options.steps)
        is_right = found is None
        if share:
            is_right = found is not None and 0.5 < found / planted < 2
        missed += not is_right
        words = "nothing" if found is None else f"{found:.3g} s"
        verdict = "right" if is_right else "WRONG"
        print(f"{kind} {share:.1%}: {planted:.3g} s a step, found {words}: {verdict}")
        sys.stdout.flush()
    print(f"{len(chosen) - missed} of {len(chosen)} right")
    return 1 if missed else 0


def tried(kind: str, share: float, steps: int) -> tuple[float, float | None]:
    """Return the planted and the found seconds of each step; None if no growth was found."""
    # Large growths are seen earlier, and would take long.
    steps = min(steps, max(round(4 / share), _FEWEST_STEPS)) if share else steps
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder) / "printed"
        words = [sys.executable, str(SCRIPT), kind, str(share), str(steps)]
        shell = ["sh", "-c", '"$@" > "$0"', str(printed), *words]
        measure = [sys.executable, "-m", "trainmark", "measure", "--repeats", "1", "--quiet"]
        results = Path(folder) / "results"
        words = [*measure, "--out", str(results), "--", *shell]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        (file,) = results.glob("*.json")
        observed = json.loads(file.read_text("utf-8"))["observed"]
        found = growth(observed["step_times"])
        return float(printed.read_text()), None if found is None else found.each_seconds


if __name__ == "__main__":
    sys.exit(main())
