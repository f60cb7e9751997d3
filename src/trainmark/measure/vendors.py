"""The supported vendors. To add one, write a module like ``measure/nvidia`` and add a line here."""

from __future__ import annotations

from trainmark.measure.nvidia import Nvidia
from trainmark.measure.vendor import Driver, GpuReading, ReadGpus, Vendor

VENDORS: tuple[Vendor, ...] = (Nvidia(),)


def read_driver() -> Driver:
    """Return the first driver that has GPUs; without any, the first vendor's, with the reason.

    On a machine with GPUs of several vendors, only those of one are described and sampled.
    """
    drivers = [vendor.read_driver() for vendor in VENDORS]
    return next((driver for driver in drivers if driver.gpus), drivers[0])


def vendor_of(driver: Driver) -> Vendor:
    """Return the vendor of the driver."""
    return next((vendor for vendor in VENDORS if vendor.name == driver.vendor), VENDORS[0])


def open_meter() -> ReadGpus:
    """Return a function that reads every GPU of the first vendor that has any.

    The result is empty without a GPU.
    """
    meters = [vendor.open_meter() for vendor in VENDORS]
    return next((read for read in meters if read()), _read_none)


def _read_none() -> tuple[GpuReading, ...]:
    return ()
