from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.measure.trees import tree
from trainmark.measure import control_group


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, None),
        ({"proc__self__cgroup": "0::/\n", "sys__fs__cgroup__cpuDOTmax": "max 100000\n"}, None),
        ({"proc__self__cgroup": "0::/\n", "sys__fs__cgroup__cpuDOTmax": "150000 100000\n"}, 1.5),
        (
            {
                "proc__self__cgroup": "0::/slice/job\n",
                "sys__fs__cgroup__slice__cpuDOTmax": "200000 100000\n",
                "sys__fs__cgroup__slice__job__cpuDOTmax": "max 100000\n",
            },
            2.0,
        ),
        (
            {
                "proc__self__cgroup": "0::/slice/job\n",
                "sys__fs__cgroup__slice__cpuDOTmax": "200000 100000\n",
                "sys__fs__cgroup__slice__job__cpuDOTmax": "50000 100000\n",
            },
            0.5,
        ),
        (
            {
                "sys__fs__cgroup__cpu__cpuDOTcfs_quota_us": "400000\n",
                "sys__fs__cgroup__cpu__cpuDOTcfs_period_us": "100000\n",
            },
            4.0,
        ),
        (
            {
                "proc__self__cgroup": "5:cpuset:/\n4:cpu,cpuacct:/docker/abc\n0::/\n",
                "sys__fs__cgroup__cpu__docker__abc__cpuDOTcfs_quota_us": "300000\n",
                "sys__fs__cgroup__cpu__docker__abc__cpuDOTcfs_period_us": "100000\n",
            },
            3.0,
        ),
        (
            {
                "sys__fs__cgroup__cpu__cpuDOTcfs_quota_us": "-1\n",
                "sys__fs__cgroup__cpu__cpuDOTcfs_period_us": "100000\n",
            },
            None,
        ),
    ],
)
def test_cpu_quota(tmp_path: Path, files: dict[str, str], cores: float | None) -> None:
    assert control_group.cpu_quota(tree(tmp_path, **files)) == cores


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({}, None),
        ({"proc__self__cgroup": "0::/a\n", "sys__fs__cgroup__a__memoryDOTmax": "max\n"}, None),
        (
            {"proc__self__cgroup": "0::/a/b\n", "sys__fs__cgroup__a__memoryDOTmax": "2147483648\n"},
            2**31,
        ),
        ({"sys__fs__cgroup__memory__memoryDOTlimit_in_bytes": "9223372036854771712\n"}, None),
        ({"sys__fs__cgroup__memory__memoryDOTlimit_in_bytes": "1073741824\n"}, 2**30),
        (
            {
                "proc__self__cgroup": "0::/a\n",
                "sys__fs__cgroup__a__memoryDOTmax": "2147483648\n",
                "sys__fs__cgroup__a__memoryDOTcurrent": "1073741824\n",
            },
            2**30,
        ),
    ],
)
def test_memory_left(tmp_path: Path, files: dict[str, str], left: int | None) -> None:
    assert control_group.memory_left(tree(tmp_path, **files)) == left


@pytest.mark.parametrize(
    ("files", "kills"),
    [
        ({}, None),
        (
            {
                "proc__self__cgroup": "0::/a\n",
                "sys__fs__cgroup__a__memoryDOTevents": "oom 3\noom_kill 2\n",
            },
            2,
        ),
        (
            {
                "sys__fs__cgroup__memory__memoryDOToom_control": "oom_kill_disable 0\n"
                "under_oom 0\noom_kill 5\n"
            },
            5,
        ),
        (
            {"sys__fs__cgroup__memory__memoryDOToom_control": "oom_kill_disable 0\nunder_oom 0\n"},
            None,
        ),
    ],
)
def test_oom_kills(tmp_path: Path, files: dict[str, str], kills: int | None) -> None:
    assert control_group.oom_kills(tree(tmp_path, **files)) == kills
