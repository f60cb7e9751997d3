"""Is a growth found where one is planted, and of which size?

    python bench/growth [--steps 1000] [--only KIND,...]

In ten trainings each step is longer than the one before by 0.1 to 5 % of the first ones; in two,
steps stay as they are. Each runs under `trainmark measure`. It prints what was planted and what was
found, of the time and of the memory; the exit code is 1 if a growth was not found or is wrong by a
factor of two, or if there is one where none was planted. Less memory than 64 MiB in a whole
training may be found or not, as well as that of a graph, whose size isn't known.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from trainmark.record import codec
from trainmark.record.growth import growth_of, memory_growth_of

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
_LEAST_BYTES = 64 << 20
"""Growth of the memory over a training that has to be found."""


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
        # Large growths are seen earlier, and would take long.
        steps = min(options.steps, max(round(4 / share), _FEWEST_STEPS)) if share else options.steps
        time, memory = tried(kind, share, steps)
        is_right = time.is_right(must=share > 0)
        if kind != "graph":
            is_right = is_right and memory.is_right(must=memory.planted * steps > _LEAST_BYTES)
        missed += not is_right
        verdict = "right" if is_right else "WRONG"
        print(
            f"{kind} {share:.1%}: seconds per step: {time}; bytes per step: {memory}: {verdict}",
            flush=True,
        )
    print(f"{len(chosen) - missed} of {len(chosen)} right")
    return 1 if missed else 0


class Tried(NamedTuple):
    """A growth that was planted, and what was found of it.

    Args:
        planted: by how much each step takes more than the one before.
        found: the same, as it was found; None if it was not.
    """

    planted: float
    found: float | None

    def is_right(self, *, must: bool) -> bool:
        """Whether it was found, if it must be, and is right to a factor of two."""
        if self.found is None:
            return not must
        return self.planted > 0 and 0.5 < self.found / self.planted < 2

    def __str__(self) -> str:
        found = "nothing" if self.found is None else f"{self.found:.3g}"
        return f"{self.planted:.3g} planted, {found} found"


def tried(kind: str, share: float, steps: int) -> tuple[Tried, Tried]:
    """Return the growths of the time in seconds, and of the memory in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder) / "printed"
        words = [sys.executable, str(SCRIPT), kind, str(share), str(steps)]
        shell = ["sh", "-c", '"$@" > "$0"', str(printed), *words]
        measure = [sys.executable, "-m", "trainmark", "measure", "--repeats", "1", "--quiet"]
        results = Path(folder) / "results"
        words = [*measure, "--out", str(results), "--", *shell]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        (file,) = results.glob("*.json")
        observed = codec.decode(file.read_bytes(), str(file)).observed
        assert observed is not None
        seconds, size = map(float, printed.read_text().split())
        grows = growth_of(observed)
        memory = memory_growth_of(observed).get("process")
    # Without a planted growth, the difference of the first and the last steps is noise.
    seconds = seconds if share else 0.0
    return (
        Tried(seconds, None if grows is None else grows.each),
        Tried(size, None if memory is None else memory.each),
    )


if __name__ == "__main__":
    sys.exit(main())
