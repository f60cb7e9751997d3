"""A stand-in for ``pynvml`` whose answers have the types that a driver's have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """With the number of NVML's error, as ``pynvml`` has it."""

    def __init__(self, text: str, value: int = 999) -> None:
        super().__init__(text)
        self.value = value


ANSWERS: dict[str, Any] = {
    "nvmlInit": None,
    "nvmlShutdown": None,
    "nvmlSystemGetDriverVersion": b"580.65.06",
    "nvmlSystemGetCudaDriverVersion_v2": 13000,
    "nvmlDeviceGetCount": 2,
    "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
    "nvmlDeviceGetUUID": b"GPU-5e1f",
    "nvmlDeviceGetCudaComputeCapability": [9, 0],
    "nvmlDeviceGetCurrPcieLinkWidth": 8,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetCurrPcieLinkGeneration": 1,
    "nvmlDeviceGetMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetEnforcedPowerLimit": 350_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetCurrentClocksEventReasons": 0x44,
    "nvmlDeviceGetTotalEccErrors": 0,
    "nvmlDeviceGetTemperature": 41,
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetP2PStatus": 0,
    "nvmlDeviceGetComputeMode": 0,
    "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=4711)],
}

READINGS: dict[str, Any] = {
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=93, memory=41),
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80 * 2**30, used=3 * 2**30, free=77 * 2**30),
    "nvmlDeviceGetPowerUsage": 612_500,
    "nvmlDeviceGetTotalEnergyConsumption": 987_654_321,
    "nvmlDeviceGetClockInfo": 1_980,
    "nvmlDeviceGetFanSpeed": NVMLError("Not Supported"),
}


def library(**changes: Any) -> Any:
    """An NVML that gives ``ANSWERS``; an exception among the changes is raised, ``...`` takes the
    function away."""

    def answering(answer: Any) -> Any:
        def function(*about: Any) -> Any:
            assert all(isinstance(each, (int, str)) for each in about), "ctypes takes no tuples"
            if isinstance(answer, Exception):
                raise answer
            return answer

        return function

    answers = {
        name: answer for name, answer in (ANSWERS | READINGS | changes).items() if answer is not ...
    }
    functions = {name: answering(answer) for name, answer in answers.items()}
    functions.setdefault("nvmlDeviceGetHandleByIndex", lambda index: f"handle {index}")
    return SimpleNamespace(NVMLError=NVMLError, **functions)
