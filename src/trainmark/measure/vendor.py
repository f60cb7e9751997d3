"""The interface of a GPU vendor, for describing, sampling and checking its GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver describes it.

    Args:
        compute_capability: ``(major, minor)``.
        pci_width: PCI lanes in use, and the most that both ends support.
        power_limit_watts: current power limit; ``power_default_watts`` is the factory default.
        throttle_reasons: why its clocks are currently held back.
        ecc_errors: uncorrected errors since the driver was loaded.
        mig: whether it is divided into instances (MIG).
        peers: indices of the GPUs whose memory it can read directly.
        processes: ids of the processes that compute on it, as far as visible to this process.
        exclusive: whether only one process at a time may compute on it.
        problem: why the driver gives no access to it; all other fields are then None.
    """

    index: int
    name: str | None = None
    uuid: str | None = None
    compute_capability: tuple[int, int] | None = None
    memory_bytes: int | None = None
    pci_width: tuple[int, int] | None = None
    pci_generation: tuple[int, int] | None = None
    persistence: bool | None = None
    power_limit_watts: float | None = None
    power_default_watts: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    ecc_errors: int | None = None
    temperature_celsius: int | None = None
    mig: bool | None = None
    peers: tuple[int, ...] | None = None
    processes: tuple[int, ...] | None = None
    exclusive: bool | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Driver:
    """A driver and its GPUs; ``problem`` says why the other fields are empty.

    Args:
        version: version of the driver.
        cuda: the newest CUDA version that it supports, ``(major, minor)``; None without its
            library.
        vendor: its vendor.
    """

    version: str | None = None
    cuda: tuple[int, int] | None = None
    gpus: tuple[Gpu, ...] = ()
    problem: str | None = None
    vendor: str | None = None


@dataclass(frozen=True)
class GpuReading:
    """One GPU at one moment; None for what it does not report.

    Samples have a column for each field.

    Args:
        percent: share of the driver's last sampling period in which any kernel ran.
        watts: power draw; on newer GPUs the mean of the last second.
        joules: energy since the driver was loaded.
        throttle_bits: why its clocks are held back, as the vendor's bit mask.
    """

    percent: float | None = None
    memory_bytes: int | None = None
    watts: float | None = None
    joules: float | None = None
    sm_hertz: float | None = None
    memory_hertz: float | None = None
    celsius: float | None = None
    fan_percent: float | None = None
    throttle_bits: int | None = None


ReadGpus = Callable[[], tuple[GpuReading, ...]]
"""Reads every GPU on each call, in the driver's order."""


@dataclass(frozen=True)
class Installed:
    """What is installed of a vendor, even if its driver does not answer.

    Args:
        device_files: device files of its GPUs.
        tool: path of the vendor's command.
        module: version of the loaded kernel module.
        wsl_drivers: under WSL, paths of libraries of a Linux driver, rather than of Windows'
            driver.
    """

    device_files: tuple[str, ...] = ()
    tool: str | None = None
    module: str | None = None
    wsl_drivers: tuple[str, ...] = ()


class Vendor(Protocol):
    """One GPU vendor.

    Args:
        name: its name on the PCI bus.
        energy_counter: source of joules if its GPUs count them.
        integrated_power: source of joules if its GPUs only report their power.
        slowdown_bits: the throttle reasons that are a defect, rather than normal under full load.
        steering: environment variables that select the device.
        undivide: the commands for a divided GPU, which may have no instance.
    """

    name: str
    energy_counter: str
    integrated_power: str
    slowdown_bits: int
    steering: tuple[str, ...]
    undivide: str

    def read_driver(self) -> Driver:
        """Read the current state of the driver and its GPUs."""

    def open_meter(self) -> ReadGpus:
        """Open a meter of its GPUs, for the lifetime of this process."""

    def number_of(self, device: str, driver: Driver) -> int | None:
        """Return the driver's number of a framework's device such as ``cuda:0``.

        The result is None if unknown or not its device.
        """

    def shown(self, driver: Driver, environment: Mapping[str, str]) -> tuple[Gpu, ...]:
        """Return the GPUs that a framework should see, according to the environment."""

    def installed(self, root: Path, environment: Mapping[str, str]) -> Installed:
        """Return what is installed of this vendor on the machine with this root and environment."""

    def devices(self, installed: Installed) -> list[str]:
        """Return the devices that frameworks probably see, without asking one."""
