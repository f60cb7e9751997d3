from __future__ import annotations

from tests.unit.measure.nvml import NVMLError, library
from trainmark.measure.nvidia.meter import NvmlMeter
from trainmark.measure.vendor import GpuReading


def test_every_gpu_is_read() -> None:
    first, second = NvmlMeter(library()).read()
    assert first == second
    assert (first.percent, first.memory_bytes, first.watts, first.joules) == (
        93,
        3 * 2**30,
        612.5,
        987_654.321,
    )
    assert (first.sm_hertz, first.celsius, first.throttle_bits) == (1.98e9, 41, 0x44)


def test_what_is_not_supported_is_unknown() -> None:
    assert NvmlMeter(library()).read()[0].fan_percent is None


def test_the_older_name_of_the_reasons() -> None:
    old = {
        "nvmlDeviceGetCurrentClocksEventReasons": ...,
        "nvmlDeviceGetCurrentClocksThrottleReasons": 8,
    }
    assert NvmlMeter(library(**old)).read()[0].throttle_bits == 8


def test_no_driver_no_gpus() -> None:
    assert NvmlMeter(library(nvmlInit=NVMLError("Driver Not Loaded"))).read() == ()


def test_a_gpu_that_is_lost_is_not_asked_again() -> None:
    asked: list[str] = []
    lost = False

    def power(handle: str) -> int:
        asked.append(handle)
        if lost and handle == "handle 1":
            raise NVMLError("GPU is lost", 15)
        return 300_000

    nvml = library()
    nvml.nvmlDeviceGetPowerUsage = power
    handles = ["handle 0", "handle 1"]
    nvml.nvmlDeviceGetHandleByIndex = handles.__getitem__
    meter = NvmlMeter(nvml)
    assert [gpu.watts for gpu in meter.read()] == [300, 300]
    lost = True
    assert [gpu.watts for gpu in meter.read()] == [300, None]
    asked.clear()
    assert meter.read()[1] == GpuReading()
    assert asked == ["handle 0"]


def test_a_gpu_that_gives_no_handle() -> None:
    def handle(index: int) -> str:
        if index == 0:
            raise NVMLError("GPU is lost")
        return "handle"

    nvml = library()
    nvml.nvmlDeviceGetHandleByIndex = handle
    first, second = NvmlMeter(nvml).read()
    assert first == GpuReading()
    assert second.percent == 93
