"""From seeds to bands: what right runs give for each published figure.

    trainmark run WORKLOAD --published --backend torch --style fast --runs 20 --out FOLDER
    python bench/bands.py FOLDER ...
    python bench/bands.py --faults FOLDER ...

Repeat the first command for each backend.

Without --faults it prints, for each published figure, the number of runs, mean and standard
deviation over all right runs in the folders, as ``seeds`` of the catalogue; the band that
follows, next to the catalogue's; and how many of these runs lie outside any band of their
workload. With --faults it prints how many faulty runs of each folder lie outside each band of the
catalogue.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from trainmark.analysis.agreement import band
from trainmark.analysis.groups import group_records
from trainmark.analysis.published_values import chains_of, read_value
from trainmark.record.record import Record
from trainmark.record.store import load
from trainmark.workload import catalog
from trainmark.workload.published import PublishedRun, PublishedValue, Seeds
from trainmark.workload.spec import Workload


def main() -> None:
    """Print the figures of every workload in the folders."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--faults", nargs="*", type=Path, default=[])
    options = parser.parse_args()
    right = load(options.folders)
    faults = {folder.name: load([folder]) for folder in options.faults}
    for workload in map(catalog.find, catalog.names()):
        for run in workload.published.runs if workload.published else ():
            of_run = [
                each
                for each in right
                if _follows(each, workload, run) and _is_right(each, workload)
            ]
            wrong = {
                fault: [each for each in found if _follows(each, workload, run)]
                for fault, found in faults.items()
            }
            if of_run or any(wrong.values()):
                print(f"\n{workload.name}, {run.name}:")
            if of_run:
                _print_right(run, of_run)
            if any(wrong.values()):
                _print_wrong(run, wrong)


def _follows(record: Record, workload: Workload, run: PublishedRun) -> bool:
    schedule = workload.scheduled_as(run).schedule_fingerprint
    return (record.workload.name, record.workload.schedule_fingerprint) == (workload.name, schedule)


def _is_right(record: Record, workload: Workload) -> bool:
    return (record.workload.step_fingerprint, record.backend.precision) == (
        workload.step_fingerprint,
        "fp32",
    )


def _print_right(run: PublishedRun, records: Sequence[Record]) -> None:
    runs = set[str]()
    outside = set[str]()
    figures = _figures(run)
    for value in run.values:
        read = list(_read(records, run, value))
        numbers = [number for _, number in read]
        if len(set(numbers)) < 2 or not all(map(math.isfinite, numbers)):  # there is no spread
            continue
        seeds = Seeds(len(read), statistics.fmean(numbers), statistics.stdev(numbers))
        bounds = band(replace(value, seeds=seeds), figures)
        runs |= {side for side, _ in read}
        outside |= {side for side, number in read if _is_outside(number, bounds)}
        spread = f"{{ count = {seeds.count}, mean = {seeds.mean:.5g}, sd = {seeds.sd:.2g} }}"
        print(f"  {_place(value)}: published {value.value}, seeds = {spread}")
        print(f"      band {_text(bounds)}, in the catalogue {_text(band(value, figures))}")
    print(f"  runs outside any band: {len(outside)} of {len(runs)}")


def _print_wrong(run: PublishedRun, wrong: dict[str, list[Record]]) -> None:
    for value in run.values:
        bounds = band(value, _figures(run))
        if bounds == (None, None):
            continue
        seen = []
        for fault, records in wrong.items():
            found = [number for _, number in _read(records, run, value)]
            if found:
                count = sum(_is_outside(number, bounds) for number in found)
                seen.append(f"{fault} {count}/{len(found)} (median {statistics.median(found):.5g})")
        print(f"  {_place(value)}: band {_text(bounds)}; outside: {', '.join(seen)}")


def _figures(run: PublishedRun) -> int:
    """Return how many figures were published for one device."""
    return len(
        {
            (value.quantity, value.where, value.repeat)
            for value in run.values
            if value.value != "nan"
        }
    )


def _read(
    records: Sequence[Record], run: PublishedRun, value: PublishedValue
) -> Iterator[tuple[str, float]]:
    """Yield each training with its figure."""
    for group in group_records(records):
        for chain in chains_of(group.records, run):
            parts = [chain] if run.protocol == "continued" else [(record,) for record in chain]
            for part in parts:
                found, _ = read_value([part], value, run)
                if found is not None:
                    yield part[0].id, found


def _is_outside(number: float, bounds: tuple[float | None, float | None]) -> bool:
    low, high = bounds
    return not ((low is None or low <= number) and (high is None or number <= high))


def _place(value: PublishedValue) -> str:
    repeat = "" if value.repeat is None else f" repeat {value.repeat}"
    return f"{value.quantity} {value.where}{repeat} {value.device}"


def _text(bounds: tuple[float | None, float | None]) -> str:
    low, high = bounds
    return f"{'any' if low is None else f'{low:.5g}'} to {'any' if high is None else f'{high:.5g}'}"


if __name__ == "__main__":
    main()
