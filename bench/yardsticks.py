"""The machines that trainmark knows by measurement, from folders of records.

    python bench/yardsticks.py docs/results [MORE...] > src/trainmark/analysis/yardsticks.json

For every device, it collects the highest measured limits, and for every workload, backend, style
and precision the median throughput of the runs. Runs with a caveat that makes their seconds
doubtful are left out.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import msgspec

from trainmark.analysis.summary import summarize
from trainmark.analysis.yardstick import Rate, Yardstick
from trainmark.record.caveats import Caveat
from trainmark.record.record import Record
from trainmark.record.store import load

DOUBTFUL = {
    Caveat.BUSY_MACHINE,
    Caveat.STOLEN_TIME,
    Caveat.SHARED_DEVICE,
    Caveat.THROTTLED,
    Caveat.LOGGED_STEPS,
    Caveat.ONE_EPOCH,
    Caveat.NOT_LEARNING,
    Caveat.PARTIAL_DATASET,
}


def yardsticks(records: list[Record]) -> list[Yardstick]:
    """One for each device."""
    by_device: dict[tuple[str, str, int | None], list[Record]] = defaultdict(list)
    for record in records:
        device = record.device
        if record.outcome.status == "ok" and device.name and device.kind and record.threads is None:
            cores = record.machine.usable_cores if device.kind == "cpu" else None
            by_device[device.name, device.kind, cores].append(record)
    return [_yardstick(*device, of) for device, of in by_device.items()]


def _yardstick(device: str, kind: str, cores: int | None, records: list[Record]) -> Yardstick:
    paces: dict[tuple[str, str, str, str | None, str, str], list[float]] = defaultdict(list)
    for record in records:
        precision = record.backend.precision
        run = summarize(record)
        style = record.backend.style
        if precision is None or style is None:
            continue  # of a measured command
        if run.samples_per_second is not None and not DOUBTFUL & run.caveats:
            backend = record.backend
            workload = record.workload
            what = (
                workload.name,
                workload.step_fingerprint,
                backend.name,
                backend.version,
                style,
                precision,
            )
            paces[what].append(run.samples_per_second)
    days = sorted({record.created[:10] for record in records})
    return Yardstick(
        device,
        kind,
        cores,
        f"measured by trainmark, {' to '.join(dict.fromkeys((days[0], days[-1])))}, "
        f"{records[0].machine.os}",
        [
            Rate(*what, float(f"{statistics.median(found):.4g}"), len(found))
            for what, found in sorted(paces.items())
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    inner = sorted(
        {file.parent for folder in options.folders for file in folder.rglob("*-r[0-9]*-*.json")}
    )
    found = msgspec.json.encode(yardsticks(load(inner)))
    sys.stdout.write(msgspec.json.format(found, indent=1).decode() + "\n")


if __name__ == "__main__":
    main()
