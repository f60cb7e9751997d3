from __future__ import annotations

from typing import Any

import pytest

from tests.unit.measure.nvml import ANSWERS, NVMLError, library
from trainmark.measure.nvidia.nvml import read_driver, throttle_reasons
from trainmark.measure.vendor import Gpu


def test_every_answer() -> None:
    driver = read_driver(library())
    assert (driver.version, driver.cuda, driver.problem) == ("580.65.06", (13, 0), None)
    assert driver.gpus[1] == Gpu(
        1,
        name="NVIDIA H100 80GB HBM3",
        uuid="GPU-5e1f",
        compute_capability=(9, 0),
        memory_bytes=80 * 2**30,
        pci_width=(8, 16),
        pci_generation=(1, 5),
        persistence=True,
        power_limit_watts=350.0,
        power_default_watts=700.0,
        throttle_reasons=("power cap", "thermal slowdown by hardware"),
        ecc_errors=0,
        temperature_celsius=41,
        mig=False,
        peers=(0,),
        processes=(4711,),
        exclusive=False,
    )


@pytest.mark.parametrize(
    "name",
    [name for name in ANSWERS if name.startswith("nvmlDeviceGet") and name != "nvmlDeviceGetCount"],
)
@pytest.mark.parametrize("absent", [NVMLError("Not Supported"), ...])
def test_one_question_without_an_answer_leaves_the_others(name: str, absent: Any) -> None:
    whole = read_driver(library())
    driver = read_driver(library(**{name: absent}))
    fields = {
        field
        for field in Gpu.__dataclass_fields__
        if getattr(whole.gpus[0], field) != getattr(driver.gpus[0], field)
    }
    assert len(fields) == 1
    assert all(getattr(driver.gpus[0], field) is None for field in fields)


def test_before_driver_535_the_reasons_have_another_name() -> None:
    old = library(
        nvmlDeviceGetCurrentClocksEventReasons=..., nvmlDeviceGetCurrentClocksThrottleReasons=0x8
    )
    assert read_driver(old).gpus[0].throttle_reasons == ("hardware slowdown",)


def test_a_gpu_that_fell_off_its_bus() -> None:
    lost = library(nvmlDeviceGetHandleByIndex=NVMLError("GPU is lost"))
    assert read_driver(lost).gpus == (Gpu(0, problem="GPU is lost"), Gpu(1, problem="GPU is lost"))


def test_no_nvml() -> None:
    driver = read_driver(library(nvmlInit=NVMLError("NVML Shared Library Not Found")))
    assert (driver.gpus, driver.problem) == ((), "NVML Shared Library Not Found")


def test_idleness_is_no_throttling() -> None:
    assert throttle_reasons(0x1) == ()
