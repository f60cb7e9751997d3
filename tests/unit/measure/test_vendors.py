"""A vendor is one class and one line: planted here, its GPUs are described, sampled, counted and
checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from trainmark.execute.parent.machine_state import read_machine_state
from trainmark.measure import vendors
from trainmark.measure.energy import energy
from trainmark.measure.host import Host
from trainmark.measure.nvidia import Nvidia
from trainmark.measure.sampler import Readers, Row, samples
from trainmark.measure.vendor import Driver, Gpu, GpuReading, Installed, ReadGpus
from trainmark.record.record import Epoch
from trainmark.study import doctor
from trainmark.study.doctor.check import Check, passed


class Acme:
    """A maker whose driver has one GPU, which draws 100 W."""

    name = "Acme"
    energy_counter = "Acme counter"
    integrated_power = "Acme power, integrated"
    slowdown_bits = 0b1
    steering: tuple[str, ...] = ("ACME_VISIBLE",)
    undivide = "acme --whole"

    def read_driver(self) -> Driver:
        return Driver("1.0", gpus=(Gpu(0, name="Acme One", processes=()),), vendor=self.name)

    def open_meter(self) -> ReadGpus:
        return lambda: (GpuReading(percent=50.0, watts=100.0),)

    def number_of(self, device: str, driver: Driver) -> int | None:
        return 0 if device == "acme:0" else None

    def shown(self, driver: Driver, environment: Mapping[str, str]) -> tuple[Gpu, ...]:
        return driver.gpus

    def installed(self, root: Path, environment: Mapping[str, str]) -> Installed:
        return Installed()

    def devices(self, installed: Installed) -> list[str]:
        return ["acme:0"]


def acme_checks(host: Host, driver: Driver) -> Iterator[Check]:
    yield Check("gpu.driver", *passed(f"Acme {driver.version}"))


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendors, "VENDORS", (Nvidia(), Acme()))
    monkeypatch.setitem(doctor.OF_VENDOR, "Acme", acme_checks)


def test_its_driver_is_described() -> None:
    here = read_machine_state()
    assert here.machine.gpus == ["Acme One"]
    assert (here.gpu("acme:0"), here.gpu("cuda:0"), here.vendor.name) == (0, None, "Acme")


def test_its_gpus_are_sampled_and_their_energy_is_counted() -> None:
    read = Readers().gpus
    seen = samples([Row(second / 2, gpus=read()) for second in range(100)], 0.0, 0.5)
    assert seen is not None and seen.gpu_percent == [[50.0]] * 100
    found = energy([Epoch(0, 5.0, 20.0, None, None)], seen, 0, read_machine_state().vendor)
    assert found is not None
    assert (found.joules, found.source) == (pytest.approx(2000.0), "Acme power, integrated")


def test_its_checks_are_the_doctor_s() -> None:
    facts = doctor.gather(quick=True)
    assert {check.id: check.found for check in doctor.diagnose(facts)}["gpu.driver"] == "Acme 1.0"


def test_a_vendor_without_checks_gets_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(doctor.OF_VENDOR, "Acme")
    checks = {check.id: check for check in doctor.diagnose(doctor.gather(quick=True))}
    assert "host.clock" in checks
    assert (checks["gpu.driver"].status, checks["gpu.driver"].found) == (
        "SKIP",
        "no checks for Acme GPUs",
    )
