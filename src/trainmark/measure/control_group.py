"""Limits of this process's control group (version 1 or 2) on Linux.

It belongs to a container, a batch job or a service.

Every file is read below a root that is passed in, so that tests don't need such a machine. What
can't be read is None.
"""

from __future__ import annotations

import re
from pathlib import Path

from trainmark.measure.files import read_number, read_text

_ROOT = Path("/")
_NO_LIMIT_BYTES = 2**60  # version 1 shows its largest number if there is no limit


def cpu_quota(root: Path = _ROOT) -> float | None:
    """Return the cores that this process's control group and its ancestors may use at a time.

    The result is None without a quota.
    """
    written = [read_text(folder / "cpu.max") or "" for folder in _groups_v2(root)]
    for folder in _groups_v1(root, "cpu"):
        written.append(
            f"{read_text(folder / 'cpu.cfs_quota_us')} {read_text(folder / 'cpu.cfs_period_us')}"
        )
    # Without a limit, the quota is ``max``, or -1 in version 1.
    quotas = [re.fullmatch(r"([1-9]\d*) (\d+)", each) for each in written]
    return min((int(quota[1]) / int(quota[2]) for quota in quotas if quota), default=None)


def memory_left(root: Path = _ROOT) -> int | None:
    """Return the bytes that this process's control group and its ancestors may still use.

    The result is None without a limit.
    """
    groups = [(folder, "max", "current") for folder in _groups_v2(root)]
    groups += [
        (folder, "limit_in_bytes", "usage_in_bytes") for folder in _groups_v1(root, "memory")
    ]
    left = []
    for folder, most, now in groups:
        limit = read_number(folder / f"memory.{most}")
        used = read_number(folder / f"memory.{now}")
        if limit is not None and limit < _NO_LIMIT_BYTES:
            left.append(max(limit - (used or 0), 0))
    return min(left, default=None)


def oom_kills(root: Path = _ROOT) -> int | None:
    """Return how many processes of this control group the system has killed for lack of memory.

    The result is None if unknown.
    """
    folders = [(folder / "memory.events") for folder in _groups_v2(root)[:1]]
    folders += [(folder / "memory.oom_control") for folder in _groups_v1(root, "memory")[:1]]
    counts = [
        re.search(r"^oom_kill (\d+)$", read_text(file) or "", re.MULTILINE) for file in folders
    ]
    return max((int(count[1]) for count in counts if count), default=None)


def _groups_v2(root: Path) -> list[Path]:
    """Return the folders of this process's control group and its ancestors."""
    found = re.search(r"^0::(/.*)$", read_text(root / "proc/self/cgroup") or "", re.MULTILINE)
    return _up_to(root / "sys/fs/cgroup", found[1]) if found else []


def _groups_v1(root: Path, controller: str) -> list[Path]:
    """Return the same for a controller of version 1.

    Inside a container the path is the host's, and only the top exists.
    """
    pattern = rf"^\d+:(?:[^:\n]*,)?{controller}(?:,[^:\n]*)?:(/.*)$"
    found = re.search(pattern, read_text(root / "proc/self/cgroup") or "", re.MULTILINE)
    return _up_to(root / "sys/fs/cgroup" / controller, found[1] if found else "/")


def _up_to(top: Path, group: str) -> list[Path]:
    folder = top / group.lstrip("/")
    return [
        folder,
        *(parent for parent in folder.parents if parent == top or top in parent.parents),
    ]
