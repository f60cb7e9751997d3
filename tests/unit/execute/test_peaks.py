from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.backends.peaks import DevicePeaks
from trainmark.execute.parent import peaks
from trainmark.execute.parent.machine_state import MachineState
from trainmark.execute.parent.peaks import Keep
from trainmark.execute.parent.plan import Side
from trainmark.execute.parent.probe import THIS, Seen
from trainmark.execute.protocol.answers import PeaksMeasured
from trainmark.execute.protocol.worker_commands import MeasurePeaks
from trainmark.measure.vendor import Driver
from trainmark.record.record import Machine, Peaks

CONDITIONS = {"backend": "torch", "version": "2.13", "threads": None}


def test_limits_are_found_again_under_the_same_conditions_only(tmp_path: Path) -> None:
    keep = Keep(tmp_path / "limits")
    kept = Peaks(2e11, 2e10, {"matmul_size": 2048})
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


class Workers:
    """Replaces the processes that measure peaks: each answer is twice as fast as the one before."""

    def __init__(self, *, received: int | None = None) -> None:
        self.requests: list[MeasurePeaks] = []
        self._answered = received
        self._speed = 1e11

    def ask(self, _: Path, request: MeasurePeaks, **__: object) -> tuple[list[PeaksMeasured], None]:
        self.requests.append(request)
        return [self._answer(options.device) for options in request.options[: self._answered]], None

    def _answer(self, device: str) -> PeaksMeasured:
        speed = self._speed
        self._speed *= 2
        return PeaksMeasured(device, DevicePeaks(speed, 2048, 1e10, 1 << 20))


def found_on(
    devices: list[str], keep: Keep, load: float = 0.0, *, only_kept: bool = False
) -> dict[str, float]:
    """Return the speed of each device that :func:`find_peaks` returns."""
    machine = Machine("m", "Linux", "x86_64", None, 1, 2, 2, 1 << 33, [], None, load)
    here = MachineState(machine, Driver(), (0, 1))
    sides = [Side("numpy", "idiomatic", device, THIS) for device in devices]
    seen = {("numpy", THIS.label): Seen("numpy", THIS, limited=True)}
    found = peaks.find_peaks(
        [(side, None) for side in sides], seen, keep, lambda: here, only_kept=only_kept
    )
    return {str(side.device): each.matmul_flops_per_second for (side, _), each in found.items()}


def test_peaks_of_a_busy_machine_are_replaced_once_it_is_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peaks, "ask", Workers().ask)
    found = [found_on(["cpu"], Keep(tmp_path), load)["cpu"] for load in (0.9, 0.9, 0.0, 0.9)]
    assert found == [1e11, 1e11, 2e11, 2e11]


def test_one_process_measures_all_devices_of_a_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = Workers()
    monkeypatch.setattr(peaks, "ask", workers.ask)
    assert found_on(["cpu", "cuda:0", "cpu"], Keep(tmp_path)) == {"cpu": 1e11, "cuda:0": 2e11}
    assert [[options.device for options in request.options] for request in workers.requests] == [
        ["cpu", "cuda:0"]
    ]
    assert found_on(["cuda:0"], Keep(tmp_path)) == {"cuda:0": 2e11}
    assert len(workers.requests) == 1, "the next command finds them in the cache"


def test_a_process_that_dies_keeps_the_devices_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peaks, "ask", Workers(received=1).ask)
    assert found_on(["cpu", "cuda:0"], Keep(tmp_path)) == {"cpu": 1e11}


def test_without_time_only_kept_peaks_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = Workers()
    monkeypatch.setattr(peaks, "ask", workers.ask)
    found_on(["cpu"], Keep(tmp_path))
    assert found_on(["cpu", "cuda:0"], Keep(tmp_path), only_kept=True) == {"cpu": 1e11}
    assert len(workers.requests) == 1
