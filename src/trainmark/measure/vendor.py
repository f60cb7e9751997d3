"""What a maker of GPUs must provide for its GPUs to be described, sampled and checked."""

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
        pci_width: lanes in use now, and the most that both ends could use.
        power_limit_watts: what it may draw now; ``power_default_watts`` what it may draw as it was made.
        throttle_reasons: why its clocks are lower than they could be, now.
        ecc_errors: uncorrected, since the driver was loaded.
        mig: whether it is divided into parts.
        peers: indices of the GPUs whose memory it can read directly.
        processes: ids of the processes that compute on it, as far as this process may see them.
        exclusive: whether only one process at a time may compute on it.
        problem: why the driver gives no access to it; then all else is None.
    """

    index: int
    name: str | None = None
    uuid: str | None = None
    compute_capability: tuple[int, int] | None = None
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
    """A driver and its GPUs; ``problem`` says why there is nothing else.

    Args:
        version: of the driver.
        cuda: the newest CUDA that it serves, ``(major, minor)``; None without its library.
        vendor: whose it is.
    """

    version: str | None = None
    cuda: tuple[int, int] | None = None
    gpus: tuple[Gpu, ...] = ()
    problem: str | None = None
    vendor: str | None = None


@dataclass(frozen=True)
class GpuReading:
    """One GPU at one moment; what it does not tell is None. Samples have a column for each field.

    Args:
        percent: share of the driver's last sampling period in which any kernel ran.
        watts: it draws; on newer GPUs the mean of the last second.
        joules: since the driver was loaded.
        throttle_bits: reasons why its clocks are held back, as the vendor numbers them.
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
"""Reads every GPU, in the driver's order, as often as it is called."""


@dataclass(frozen=True)
class Installed:
    """What a machine has of a vendor, whether its driver answers or not.

    Args:
        device_files: of its GPUs.
        tool: path of the vendor's command.
        module: version of the kernel module that is loaded.
        wsl_drivers: under WSL, where libraries of a Linux driver lie, which Windows' own is not.
    """

    device_files: tuple[str, ...] = ()
    tool: str | None = None
    module: str | None = None
    wsl_drivers: tuple[str, ...] = ()


class Vendor(Protocol):
    """One maker of GPUs.

    Args:
        name: as the PCI bus tells it.
        energy_counter: where joules come from if its GPUs count them.
        integrated_power: where joules come from if they only tell their power.
        slowdown_bits: the throttle reasons that are a defect, not how a GPU works under full load.
        steering: variables of the environment that decide which device is used.
        undivide: the commands for a GPU that is divided, and perhaps has no part.
    """

    name: str
    energy_counter: str
    integrated_power: str
    slowdown_bits: int
    steering: tuple[str, ...]
    undivide: str

    def read_driver(self) -> Driver:
        """The driver and its GPUs as they are now."""

    def open_meter(self) -> ReadGpus:
        """A meter of its GPUs, which stays open until this process ends."""

    def number_of(self, device: str, driver: Driver) -> int | None:
        """The driver's number of a framework's device such as ``cuda:0``; None if it is another's or can't be told."""

    def shown(self, driver: Driver, environment: Mapping[str, str]) -> tuple[Gpu, ...]:
        """The GPUs that a framework should see, as far as the environment tells."""

    def installed(self, root: Path, environment: Mapping[str, str]) -> Installed:
        """What the machine with this root and environment has of it."""

    def devices(self, installed: Installed) -> list[str]:
        """The devices that frameworks seem to have, without asking one."""
