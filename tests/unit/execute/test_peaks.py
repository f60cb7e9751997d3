from __future__ import annotations

from pathlib import Path

from trainmark.execute.parent.peaks import Keep
from trainmark.record.record import Peaks

CONDITIONS = {"backend": "torch", "version": "2.13", "threads": None}


def test_limits_are_found_again_under_the_same_conditions_only(tmp_path: Path) -> None:
    keep, peaks = Keep(tmp_path / "limits"), Peaks(2e11, 2e10, {"matmul_size": 2048})
    keep.put(CONDITIONS, peaks)
    assert keep.find(dict(reversed(CONDITIONS.items()))) == peaks
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
