"""Energy of the CPU's packages, from the counters that Linux shows below ``powercap`` (Intel's RAPL, AMD's too)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_MICRO = 1e-6
_PACKAGE = "intel-rapl:[0-9]*"  # AMD's stand below the same name; parts of a package have a second number


@dataclass(frozen=True)
class _Package:
    counter: Path
    range_microjoules: int


class Rapl:
    """The packages of this machine.

    Args:
        root: of the file system.

    Attributes:
        problem: why there is nothing to read, None where there is.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self.problem: str | None = None
        self._packages: list[_Package] = []
        self._last: list[int] = []
        self._wrapped: list[int] = []
        folders = sorted(each for each in (root / "sys/class/powercap").glob(_PACKAGE) if each.name.count(":") == 1)
        if not folders:
            self.problem = "no energy counter of the CPU (no RAPL: a virtual machine, or not Linux)"
        for folder in folders:
            self._open(folder)
        if self.problem:
            self._packages = []

    def joules(self) -> float | None:
        """Joules of all packages since they were opened... any moment: only differences count. None: can't be read."""
        if not self._packages:
            return None
        total = 0
        for index, package in enumerate(self._packages):
            now = _number(package.counter)
            if now is None:
                return None
            if now < self._last[index]:  # it begins anew at its range, on a busy server after some minutes
                self._wrapped[index] += package.range_microjoules
            self._last[index] = now
            total += now + self._wrapped[index]
        return total * _MICRO

    def _open(self, folder: Path) -> None:
        try:
            first = int((folder / "energy_uj").read_text())
            range_ = int((folder / "max_energy_range_uj").read_text())
        except PermissionError:
            self.problem = f"no permission to read {folder / 'energy_uj'}"
        except (OSError, ValueError) as error:
            self.problem = f"{folder} can't be read: {error}"
        else:
            self._packages.append(_Package(folder / "energy_uj", range_))
            self._last.append(first)
            self._wrapped.append(0)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
