"""What Linux allows the control group of this process, of either version: a container, a batch job or a service.

Every file is read below a root that is passed in, so that tests need no such machine. What can't be read is None.
"""

from __future__ import annotations

import re
from pathlib import Path

from trainmark.measure.files import read_number, read_text

_ROOT = Path("/")
_NO_LIMIT_BYTES = 2**60  # version 1 writes its largest number for none


def cpu_quota(root: Path = _ROOT) -> float | None:
    """Cores that this process's control group may use at a time, the least of it and all above it; None: no quota."""
    quotas = [_quota_in(read_text(folder / "cpu.max")) for folder in _groups_v2(root)]
    quotas += [_quota_v1(folder) for folder in _groups_v1(root, "cpu")]
    return min((quota for quota in quotas if quota is not None), default=None)


def memory_left(root: Path = _ROOT) -> int | None:
    """Bytes that this process's control group may still use, the least of it and all above it; None: no limit."""
    pairs = [(folder / "memory.max", folder / "memory.current") for folder in _groups_v2(root)]
    pairs += [
        (folder / "memory.limit_in_bytes", folder / "memory.usage_in_bytes") for folder in _groups_v1(root, "memory")
    ]
    left = []
    for limit_file, used_file in pairs:
        limit, used = read_number(limit_file), read_number(used_file)
        if limit is not None and limit < _NO_LIMIT_BYTES:
            left.append(max(limit - (used or 0), 0))
    return min(left, default=None)


def oom_kills(root: Path = _ROOT) -> int | None:
    """How many processes of this process's control group the system has killed for want of memory; None: not told."""
    folders = [(folder / "memory.events") for folder in _groups_v2(root)[:1]]
    folders += [(folder / "memory.oom_control") for folder in _groups_v1(root, "memory")[:1]]
    counts = [re.search(r"^oom_kill (\d+)$", read_text(file) or "", re.MULTILINE) for file in folders]
    return max((int(count[1]) for count in counts if count), default=None)


def _groups_v2(root: Path) -> list[Path]:
    """The folder of this process's control group, and those above it."""
    found = re.search(r"^0::(/.*)$", read_text(root / "proc/self/cgroup") or "", re.MULTILINE)
    return _up_to(root / "sys/fs/cgroup", found[1]) if found else []


def _groups_v1(root: Path, controller: str) -> list[Path]:
    """The same of a controller of version 1. Inside a container the path is the host's, and only the top is there."""
    pattern = rf"^\d+:(?:[^:\n]*,)?{controller}(?:,[^:\n]*)?:(/.*)$"
    found = re.search(pattern, read_text(root / "proc/self/cgroup") or "", re.MULTILINE)
    return _up_to(root / "sys/fs/cgroup" / controller, found[1] if found else "/")


def _up_to(top: Path, group: str) -> list[Path]:
    folder = top / group.lstrip("/")
    return [folder, *(parent for parent in folder.parents if parent == top or top in parent.parents)]


def _quota_in(written: str | None) -> float | None:
    """Cores of a ``cpu.max``, such as ``150000 100000``."""
    quota, _, period = (written or "").partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _quota_v1(folder: Path) -> float | None:
    quota, period = read_text(folder / "cpu.cfs_quota_us"), read_text(folder / "cpu.cfs_period_us")
    if quota is None or period is None or int(quota) <= 0:
        return None
    return int(quota) / int(period)
