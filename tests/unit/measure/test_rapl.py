from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.measure.rapl import Rapl


def packages(root: Path, *microjoules: int, range_: int = 1_000_000) -> Path:
    for index, value in enumerate(microjoules):
        folder = root / f"sys/class/powercap/intel-rapl:{index}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "energy_uj").write_text(f"{value}\n")
        (folder / "max_energy_range_uj").write_text(f"{range_}\n")
        (folder / "name").write_text(f"package-{index}\n")
    return root


@pytest.mark.parametrize(("folder", "name"), [("intel-rapl:0:0", "core"), ("intel-rapl:2", "psys")])
def test_packages_are_added_and_neither_parts_nor_the_platform(
    tmp_path: Path, folder: str, name: str
) -> None:
    packages(tmp_path, 2_000_000, 3_000_000)
    other = tmp_path / "sys/class/powercap" / folder
    other.mkdir()
    (other / "energy_uj").write_text("7000000")
    (other / "max_energy_range_uj").write_text("7000000")
    (other / "name").write_text(name)
    assert Rapl.of(tmp_path).joules() == pytest.approx(5.0)


def test_a_counter_that_begins_anew_goes_on(tmp_path: Path) -> None:
    rapl = Rapl.of(packages(tmp_path, 900_000))
    before = rapl.joules()
    packages(tmp_path, 100_000)
    first = rapl.joules()
    packages(tmp_path, 200_000)
    second = rapl.joules()
    assert before is not None
    assert first is not None
    assert second is not None
    assert first - before == pytest.approx(0.2)
    assert second - first == pytest.approx(0.1)


def test_without_counters_nothing_is_read(tmp_path: Path) -> None:
    rapl = Rapl.of(tmp_path)
    assert rapl.joules() is None
    assert rapl.problem is not None
    assert "no RAPL" in rapl.problem


def test_a_missing_permission_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages(tmp_path, 1, 2)
    read_text = Path.read_text

    # root, as which tests may run, may read everything
    def denied(path: Path, **options: str) -> str:
        if path.parent.name == "intel-rapl:1" and path.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return read_text(path, **options)

    monkeypatch.setattr(Path, "read_text", denied)
    rapl = Rapl.of(tmp_path)
    assert rapl.problem is not None
    assert "no permission" in rapl.problem
    assert rapl.joules() is None, "one package alone is not the CPU"


def test_a_counter_that_goes_away_is_unknown(tmp_path: Path) -> None:
    rapl = Rapl.of(packages(tmp_path, 5))
    (tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj").unlink()
    assert rapl.joules() is None


def test_a_counter_that_holds_no_number(tmp_path: Path) -> None:
    packages(tmp_path, 5)
    (tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj").write_text("")
    rapl = Rapl.of(tmp_path)
    assert rapl.joules() is None
    assert rapl.problem is not None
    assert "can't be read" in rapl.problem
