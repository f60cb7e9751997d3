"""NVIDIA GPUs, through NVML."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from trainmark.measure.files import read_text
from trainmark.measure.nvidia import visible
from trainmark.measure.nvidia.meter import NvmlMeter
from trainmark.measure.nvidia.nvml import NAME, SLOWDOWN_BITS, read_driver
from trainmark.measure.vendor import Installed, ReadGpus

_LIBRARY_FOLDERS = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64")


class Nvidia:
    """NVIDIA as a :class:`~trainmark.measure.vendor.Vendor`."""

    name = NAME
    energy_counter = "NVML energy counter"
    integrated_power = "NVML power, integrated"
    slowdown_bits = SLOWDOWN_BITS
    steering: tuple[str, ...] = (visible.VISIBLE, "NVIDIA_VISIBLE_DEVICES", visible.ORDER)
    undivide = (
        "sudo nvidia-smi mig -lgip, then mig -cgi ID -C; or turn MIG off: sudo nvidia-smi -mig 0"
    )

    read_driver = staticmethod(read_driver)
    number_of = staticmethod(visible.number_of)
    shown = staticmethod(visible.shown)

    def open_meter(self) -> ReadGpus:
        """Open a meter of its GPUs."""
        return NvmlMeter().read

    def installed(self, root: Path, environment: Mapping[str, str]) -> Installed:
        """Return what is installed on the machine."""
        files = [root / folder / "libcuda.so.1" for folder in _LIBRARY_FOLDERS]
        foreign = [
            file
            for file in files
            if file.exists() and root / "usr/lib/wsl" not in file.resolve().parents
        ]
        return Installed(
            device_files=tuple(
                sorted(f"/dev/{path.name}" for path in (root / "dev").glob("nvidia[0-9]*"))
            ),
            tool=shutil.which("nvidia-smi", path=environment.get("PATH")),
            module=read_text(root / "sys/module/nvidia/version"),
            wsl_drivers=tuple(f"/{file.relative_to(root)}" for file in foreign),
        )

    def devices(self, installed: Installed) -> list[str]:
        """Return ``cuda:N`` for each device file."""
        return [f"cuda:{number}" for number in range(len(installed.device_files))]
