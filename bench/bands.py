"""From seeds to bands: what right runs give for each published figure.

    trainmark run WORKLOAD --published --backend torch --style fast --runs 20 --out FOLDER     (once per backend)
    python bench/bands.py FOLDER ...

For each published figure it prints the number of runs, mean and standard deviation over all right runs in the folders,
as ``seeds`` of the catalogue; the band that follows; how many of these runs lie outside any band of their workload; and
for ``--faults FOLDER``, how many of the faulty runs there are outside each band.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from trainmark.analysis.agreement import band
from trainmark.analysis.groups import group_records
from trainmark.analysis.reading import chains_of, read_value
from trainmark.record.record import Record
from trainmark.record.store import load
from trainmark.workload import catalog
from trainmark.workload.published import PublishedRun, PublishedValue, Seeds


def main() -> None:
    """Print the figures of every workload in the folders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--faults", nargs="*", type=Path, default=[])
    options = parser.parse_args()
    records = load(options.folders)
    faults = {folder.name: load([folder]) for folder in options.faults}
    for name in catalog.names():
        workload = catalog.find(name)
        for run in workload.published.runs if workload.published else ():
            fingerprint = workload.scheduled_as(run).schedule_fingerprint
            right = [each for each in records if _follows(each, name, fingerprint)]
            if right:
                wrong = {
                    fault: [each for each in found if _follows(each, name, fingerprint)]
                    for fault, found in faults.items()
                }
                print(f"\n{name}, {run.name}:")
                _print(run, right, wrong)


def _follows(record: Record, name: str, fingerprint: str) -> bool:
    return record.workload.name == name and record.workload.schedule_fingerprint == fingerprint


def _print(run: PublishedRun, right: Sequence[Record], wrong: dict[str, list[Record]]) -> None:
    values, runs, outside = [], set[str](), set[str]()
    places = {(value.quantity, value.where, value.repeat) for value in run.values if value.value != "nan"}
    figures = len(places)  # of one device
    for value in run.values:
        read = list(_read(right, run, value))
        if len(read) < 2 or value.value == "nan":
            continue
        seeds = Seeds(len(read), statistics.fmean(number for _, number in read), statistics.stdev(n for _, n in read))
        judged = replace(value, seeds=seeds)
        low, high = band(judged, figures)
        assert low is not None and high is not None
        values.append(judged)
        runs |= {who for who, _ in read}
        outside |= {who for who, number in read if not low <= number <= high}
        seen = {
            fault: f"{sum(not low <= number <= high for _, number in _read(found, run, value))}/{len(found)}"
            for fault, found in wrong.items()
        }
        spread = f"{{ count = {seeds.count}, mean = {seeds.mean:.5g}, sd = {seeds.sd:.2g} }}"
        print(f"  {value.quantity} {value.where} {value.device}: published {value.value}, seeds = {spread}")
        print(f"      band {low:.5g} to {high:.5g}, now {value.low} to {value.high} {seen or ''}")
    print(f"  runs outside any band: {len(outside)} of {len(runs)}")


def _read(records: Sequence[Record], run: PublishedRun, value: PublishedValue) -> Iterator[tuple[str, float]]:
    """Yield each training with its figure."""
    for group in group_records(records):
        for chain in chains_of(group.records, run):
            parts = [chain] if run.protocol == "continued" else [(record,) for record in chain]
            for part in parts:
                found, _ = read_value([part], value, run)
                if found is not None:
                    yield part[0].id, found


if __name__ == "__main__":
    main()
