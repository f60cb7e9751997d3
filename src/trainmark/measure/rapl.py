"""Energy of the CPU's packages, from the counters that Linux shows below ``powercap`` (Intel's RAPL, AMD's too)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.measure.files import read_number, read_text

_MICRO = 1e-6
_DOMAINS = "intel-rapl:[0-9]*"  # AMD's stand below the same name


@dataclass(frozen=True)
class Package:
    """One package's counter, which begins anew at its range: on a busy server after some minutes."""

    counter: Path
    range_microjoules: int


class Rapl:
    """The packages of a machine.

    Args:
        packages: all of them, or none where one can't be read: one alone is not the CPU.
        problem: why there is nothing to read; None where there is.
    """

    def __init__(self, packages: Sequence[Package] = (), problem: str | None = None) -> None:
        self.problem = problem
        self._packages = tuple(packages)
        self._last = [0] * len(self._packages)
        self._wrapped = [0] * len(self._packages)

    @classmethod
    def of(cls, root: Path = Path("/")) -> Rapl:
        """Those of the machine whose files lie below ``root``."""
        packages = []
        for folder in sorted((root / "sys/class/powercap").glob(_DOMAINS)):
            # Parts of a package, and the whole platform, which holds the packages again, have other names.
            if not (read_text(folder / "name") or "").startswith("package"):
                continue
            try:
                int((folder / "energy_uj").read_text())
                packages.append(Package(folder / "energy_uj", int((folder / "max_energy_range_uj").read_text())))
            except PermissionError:
                return cls(problem=f"no permission to read {folder / 'energy_uj'}")
            except (OSError, ValueError) as error:
                return cls(problem=f"{folder} can't be read: {error}")
        if not packages:
            return cls(problem="no energy counter of the CPU (no RAPL: a virtual machine, or not Linux)")
        return cls(packages)

    def joules(self) -> float | None:
        """Joules of all packages since some moment: only differences count. None where one can't be read."""
        if not self._packages:
            return None
        total = 0
        for index, package in enumerate(self._packages):
            now = read_number(package.counter)
            if now is None:
                return None
            if now < self._last[index]:
                self._wrapped[index] += package.range_microjoules
            self._last[index] = now
            total += now + self._wrapped[index]
        return total * _MICRO
