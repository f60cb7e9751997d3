from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.measure.trees import tree
from trainmark.measure import host
from trainmark.measure.vendor import Installed


@pytest.mark.parametrize(
    ("files", "environment", "kind"),
    [
        ({"proc__1__cgroup": "0::/init.scope\n"}, {}, None),
        ({"DOTdockerenv": ""}, {}, "docker"),
        ({"run__DOTcontainerenv": ""}, {}, "podman"),
        ({"run__systemd__container": "lxc\n"}, {}, "lxc"),
        ({}, {"container": "oci"}, "oci"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"proc__1__cgroup": "12:cpu:/kubepods/besteffort/pod1\n"}, {}, "kubepods"),
    ],
)
def test_container(
    tmp_path: Path, files: dict[str, str], environment: dict[str, str], kind: str | None
) -> None:
    assert host.container(tree(tmp_path, **files), environment) == kind


def test_governors_and_turbo(tmp_path: Path) -> None:
    cpus = "sys__devices__system__cpu__"
    assert host.governors(tmp_path) == ()
    assert host.turbo(tmp_path) is None
    tree(
        tmp_path,
        **{
            f"{cpus}cpu0__cpufreq__scaling_governor": "powersave\n",
            f"{cpus}cpu1__cpufreq__scaling_governor": "performance\n",
            f"{cpus}cpufreq__boost": "1\n",
        },
    )
    assert host.governors(tmp_path) == ("performance", "powersave")
    assert host.turbo(tmp_path) is True
    assert host.turbo(tree(tmp_path, **{f"{cpus}intel_pstate__no_turbo": "1\n"})) is False


def test_gpus_on_the_bus(tmp_path: Path) -> None:
    assert host.gpus_on_bus(tmp_path) is None
    bus = "sys__bus__pci__devices__"
    tree(
        tmp_path,
        **{
            f"{bus}gpu__vendor": "0x10de\n",
            f"{bus}gpu__class": "0x030200\n",
            f"{bus}sound__vendor": "0x10de\n",
            f"{bus}sound__class": "0x040300\n",
            f"{bus}amd__vendor": "0x1002\n",
            f"{bus}amd__class": "0x030000\n",
            f"{bus}other__vendor": "0x1234\n",
            f"{bus}other__class": "0x030000\n",
        },
    )
    assert host.gpus_on_bus(tmp_path) == {"NVIDIA": 1, "AMD": 1}


def test_a_clock_that_steps_or_goes_back() -> None:
    ticks = iter([0.0, 0.0, 0.5, 0.5, 1.0])
    assert host.clock_resolution(lambda: next(ticks), tries=2) == 0.5
    backwards = iter([1.0, 2.0, 2.0, 1.0])
    assert host.clock_resolution(lambda: next(backwards), tries=2) == -1.0


def test_wsl_and_an_unreadable_tree(tmp_path: Path) -> None:
    found = host.read_host(
        tree(tmp_path, proc__sys__kernel__osrelease="5.15.1-microsoft-standard-WSL2\n"),
        {"PATH": ""},
    )
    assert found.wsl
    assert (found.cpu_quota, found.shared_memory_bytes, found.gpus_on_bus) == (None,) * 3
    assert found.installed == {"NVIDIA": Installed()}


def test_a_linux_driver_inside_wsl_and_a_link_to_windows_own(tmp_path: Path) -> None:
    assert host.read_host(tree(tmp_path, usr__lib64__x="")).installed["NVIDIA"].wsl_drivers == ()
    windows = tmp_path / "usr/lib/wsl/lib"
    linux = tmp_path / "usr/lib64/libcuda.so.1"
    windows.mkdir(parents=True)
    (windows / "libcuda.so.1").touch()
    linux.symlink_to(windows / "libcuda.so.1")
    assert host.read_host(tmp_path).installed["NVIDIA"].wsl_drivers == ()
    linux.unlink()
    linux.touch()
    assert host.read_host(tmp_path).installed["NVIDIA"].wsl_drivers == ("/usr/lib64/libcuda.so.1",)


def test_infiniband(tmp_path: Path) -> None:
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    assert host.read_host(tmp_path).infiniband == ("mlx5_0",)


@pytest.mark.skipif(sys.platform == "darwin", reason="there it is known")
def test_whether_it_is_translated_is_not_known_here() -> None:
    assert host.is_translated() is None


def test_this_machine() -> None:
    found = host.read_host()
    assert found.usable_cores and found.usable_cores >= 1
    assert found.clock_resolution_seconds is not None and 0 < found.clock_resolution_seconds < 1e-3
    assert found.memory_available_bytes and found.memory_available_bytes > 0
