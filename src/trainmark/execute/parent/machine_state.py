"""The state of the machine just before a process starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainmark.measure.host import usable_core_numbers
from trainmark.measure.machine import describe
from trainmark.measure.neighbours import read_load
from trainmark.measure.vendor import Driver, Vendor
from trainmark.measure.vendors import read_driver, vendor_of
from trainmark.record.caveats import BUSY_SHARE
from trainmark.record.record import Machine
from trainmark.version import version


@dataclass(frozen=True)
class MachineState:
    """The machine, its GPUs, the usable cores, and trainmark's version.

    GPUs are as their driver sees them, and cores have their numbers.
    """

    machine: Machine
    driver: Driver
    cores: tuple[int, ...] = field(default_factory=usable_core_numbers)
    trainmark: str | None = None

    @property
    def vendor(self) -> Vendor:
        """The vendor of the GPUs."""
        return vendor_of(self.driver)

    def gpu(self, device: str) -> int | None:
        """The driver's number of a device; None for a CPU or if unknown."""
        return self.vendor.number_of(device, self.driver)

    @property
    def is_busy(self) -> bool:
        """Whether other processes use the CPU."""
        return (self.machine.load_before or 0.0) > BUSY_SHARE

    def is_shared(self, gpu: int | None) -> bool:
        """Whether another process uses that GPU."""
        return any(each.processes for each in self.driver.gpus if each.index == gpu)

    def power_limit(self, gpu: int | None) -> float | None:
        """Power limit of the GPU, in watts."""
        return next(
            (each.power_limit_watts for each in self.driver.gpus if each.index == gpu), None
        )


def read_machine_state(labels: Mapping[str, str] | None = None) -> MachineState:
    """Read the machine's state; takes a moment, to measure the load.

    Args:
        labels: the user's labels of this machine.
    """
    load = read_load().taken
    driver = read_driver()
    return MachineState(describe(load, driver, labels=labels), driver, trainmark=version())
