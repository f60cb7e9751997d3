"""Energy of the CPU's packages (RAPL, of Intel and AMD).

It is read from the counters in Linux's ``powercap``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainmark.measure.files import read_number, read_text

_MICRO = 1e-6
_DOMAINS = "intel-rapl:[0-9]*"  # also AMD's


class Rapl:
    """The energy counters of a machine's CPU packages.

    Args:
        packages: the counter of each package, and the microjoules after which it wraps around, on a
            busy server within minutes; none if one can't be read, since only all together are the
            CPU.
        problem: why nothing can be read; None if it can.
    """

    def __init__(
        self, packages: Sequence[tuple[Path, int]] = (), problem: str | None = None
    ) -> None:
        self.problem = problem
        self._packages = tuple(packages)
        self._last = [0] * len(self._packages)
        self._wrapped = [0] * len(self._packages)

    @classmethod
    def of(cls, root: Path = Path("/")) -> Rapl:
        """Return the counters of the machine with its files below ``root``."""
        packages = []
        for folder in sorted((root / "sys/class/powercap").glob(_DOMAINS)):
            # Parts of a package, and the whole platform, which includes the packages, have other
            # names.
            if not (read_text(folder / "name") or "").startswith("package"):
                continue
            try:
                int((folder / "energy_uj").read_text())
                packages.append(
                    (folder / "energy_uj", int((folder / "max_energy_range_uj").read_text()))
                )
            except PermissionError:
                return cls(problem=f"no permission to read {folder / 'energy_uj'}")
            except (OSError, ValueError) as error:
                return cls(problem=f"{folder} can't be read: {error}")
        if not packages:
            return cls(
                problem="the CPU has no energy counter (no RAPL: a virtual machine, or not Linux)"
            )
        return cls(packages)

    def joules(self) -> float | None:
        """Return joules of all packages since an arbitrary start: only differences count.

        The result is None if one can't be read.
        """
        if not self._packages:
            return None
        total = 0
        for index, (counter, most) in enumerate(self._packages):
            now = read_number(counter)
            if now is None:
                return None
            if now < self._last[index]:
                self._wrapped[index] += most
            self._last[index] = now
            total += now + self._wrapped[index]
        return total * _MICRO
