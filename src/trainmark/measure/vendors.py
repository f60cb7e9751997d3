"""The vendors that trainmark knows. A new one is a file like ``measure/nvidia`` and a line here."""

from __future__ import annotations

from trainmark.measure.nvidia import Nvidia
from trainmark.measure.vendor import Driver, ReadGpus, Vendor

VENDORS: tuple[Vendor, ...] = (Nvidia(),)


def read_driver() -> Driver:
    """The first driver that has GPUs; without any, the first vendor's, which says why.

    On a machine with GPUs of several vendors, only those of one are described and sampled.
    """
    drivers = [vendor.read_driver() for vendor in VENDORS]
    return next((driver for driver in drivers if driver.gpus), drivers[0])


def vendor_of(driver: Driver) -> Vendor:
    """Whose driver it is."""
    return next((vendor for vendor in VENDORS if vendor.name == driver.vendor), VENDORS[0])


def open_meter() -> ReadGpus:
    """Reads every GPU of the first vendor that has any; nothing without a GPU."""
    meters = [vendor.open_meter() for vendor in VENDORS]
    return next((read for read in meters if read()), lambda: ())
