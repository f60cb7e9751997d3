from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.execute.parent import peaks
from trainmark.execute.parent.here import Here
from trainmark.execute.parent.peaks import Keep
from trainmark.execute.parent.plan import Side
from trainmark.execute.parent.probe import THIS, Seen
from trainmark.measure.vendor import Driver
from trainmark.record.record import Machine, Peaks

CONDITIONS = {"backend": "torch", "version": "2.13", "threads": None}


def test_limits_are_found_again_under_the_same_conditions_only(tmp_path: Path) -> None:
    keep, kept = Keep(tmp_path / "limits"), Peaks(2e11, 2e10, {"matmul_size": 2048})
    keep.put(CONDITIONS, kept)
    assert keep.find(dict(reversed(CONDITIONS.items()))) == kept
    assert keep.find(CONDITIONS | {"version": "2.14"}) is None


def test_a_damaged_file_is_measured_again(tmp_path: Path) -> None:
    keep = Keep(tmp_path)
    keep.put(CONDITIONS, Peaks(2e11, 2e10))
    (file,) = tmp_path.iterdir()
    file.write_text('{"matmul_flops_per_second": "fast"}')
    assert keep.find(CONDITIONS) is None
    file.write_bytes(b"")
    assert keep.find(CONDITIONS) is None


def test_a_folder_that_can_not_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "limits").write_text("a file")
    Keep(tmp_path / "limits").put(CONDITIONS, Peaks(2e11, 2e10))
    assert Keep(tmp_path / "limits").find(CONDITIONS) is None


def test_limits_found_on_a_busy_machine_are_kept_until_it_is_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = iter([1e11, 2e11, 9e11])

    def measure(*_: object, disturbed: bool) -> Peaks:
        return Peaks(next(measured), None, {"disturbed": disturbed})

    monkeypatch.setattr(peaks, "_measure", measure)
    found = []
    for load in (0.9, 0.9, 0.0, 0.9):
        machine = Machine("m", "Linux", "x86_64", None, 1, 2, 2, 1 << 33, [], None, load)
        here = Here(machine, Driver(), (0, 1))
        side = Side("numpy", "idiomatic", "cpu", THIS)
        seen = {("numpy", THIS.label): Seen("numpy", THIS, limited=True)}
        ((_, limits),) = peaks.find_peaks([(side, None)], seen, Keep(tmp_path), lambda here=here: here).items()
        found.append(limits.matmul_flops_per_second)
    assert found == [1e11, 1e11, 2e11, 2e11]
