"""Does `trainmark explain` promise what following its advice gives?

    python bench/explain.py WORKLOAD [--backend torch,jax,keras] [--style idiomatic] [--repeats 3]
    [--out FILE.json]

For each backend: `trainmark explain`, with its time; then its first advice is followed by
`trainmark run`, side by side with what was explained, and the speed-up that came of it is put
next to the promise. At least 80 % of it should come. Needs TRAINMARK_DATA and a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trainmark.analysis.summary import summarize
from trainmark.record.store import load
from trainmark.workload import catalog

ENOUGH = 0.8


def trainmark(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "trainmark", *arguments], check=True, capture_output=True, text=True
    ).stdout


def explained(workload: str, backend: str, style: str) -> tuple[dict[str, Any], float]:
    start = time.perf_counter()
    found = json.loads(
        trainmark(
            "explain", workload, "--backend", backend, "--style", style, "--device", "cpu", "--json"
        )
    )
    return found, time.perf_counter() - start


def followed(
    workload: str, backend: str, style: str, advice: dict[str, Any], repeats: int
) -> float | None:
    """Return how many times faster an example is trained; None if trainmark can't follow the
    advice."""
    with tempfile.TemporaryDirectory() as folder:
        changed = workload
        styles = style
        if advice["style"]:
            styles = f"{style},{advice['style']}"
        elif advice["batch"]:
            changed = str(_with_batch(workload, advice["batch"], Path(folder)))
        else:
            return None
        out = Path(folder) / "records"
        common = [
            "--backend",
            backend,
            "--device",
            "cpu",
            "--repeats",
            str(repeats),
            "--out",
            str(out),
            "--epochs",
            "2",
        ]
        trainmark("run", *dict.fromkeys((workload, changed)), "--style", styles, *common)
        rates: dict[bool, list[float]] = {False: [], True: []}
        for record in load([out]):
            new = (
                record.workload.name != catalog.find(workload).name or record.backend.style != style
            )
            rate = summarize(record).samples_per_second
            assert rate is not None
            rates[new].append(rate)
    return sorted(rates[True])[repeats // 2] / sorted(rates[False])[repeats // 2]


def _with_batch(workload: str, size: int, folder: Path) -> Path:
    text = (
        Path(catalog.__file__).with_name(f"{workload}.toml").read_text().partition("[published")[0]
    )
    text = re.sub(
        r'^name = ".*"$', f'name = "{workload}-batch-{size}"', text, count=1, flags=re.MULTILINE
    )
    before, found, batches = text.partition("[batches]")
    text = (
        before
        + found
        + re.sub(r"^size = .*$", f"size = {size}", batches, count=1, flags=re.MULTILINE)
    )
    path = folder / f"{workload}-batch-{size}.toml"
    path.write_text(text)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload")
    parser.add_argument("--backend", default="torch,jax,keras")
    parser.add_argument("--style", default="idiomatic")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = []
    for backend in options.backend.split(","):
        found, seconds = explained(options.workload, backend, options.style)
        largest = found["shares"][0]
        print(
            f"{options.workload} {backend} {options.style}: explained in {seconds:.0f} s; "
            f"{largest['cause']} "
            f"{100 * largest['share']:.1f} %, unexplained {100 * found['unexplained']:.1f} %",
            flush=True,
        )
        got = None
        if found["advice"]:
            advice = found["advice"][0]
            got = followed(options.workload, backend, options.style, advice, options.repeats)
            kept = (
                ""
                if got is None
                else f", came {got:.2f}×: {100 * got / advice['promise']:.0f} % of it"
            )
            print(
                f"  {advice['do']}\n  promised at most {advice['promise']:.2f}×{kept}", flush=True
            )
        results.append({"backend": backend, "seconds": seconds, "explained": found, "came": got})
    if options.out:
        options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
