"""The state of NVIDIA's driver and GPUs, through NVML.

The library is passed in, so that tests need no GPU.

Each query can fail separately: a virtual GPU has no fan, a consumer card no ECC, a container may
have no permission. An unknown value is None, never 0.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from trainmark.measure.vendor import Driver, Gpu

NAME = "NVIDIA"
_MILLI = 1e-3

# These numbers are defined in nvml.h.
CLOCK_SM = 1
CLOCK_MEMORY = 2
TEMPERATURE_GPU = 0
_GPU_IS_LOST = 15
"""``NVML_ERROR_GPU_IS_LOST``"""
_EXCLUSIVE_PROCESS = 3
"""``NVML_COMPUTEMODE_EXCLUSIVE_PROCESS``"""
_UNCORRECTED = 1
"""``NVML_MEMORY_ERROR_TYPE_UNCORRECTED``"""
_SINCE_LOADED = 0
"""``NVML_VOLATILE_ECC``: errors since the driver was loaded."""
_CAN_READ = 0
"""``NVML_P2P_CAPS_INDEX_READ``, which in pynvml is a tuple that ctypes refuses."""
_P2P_OK = 0
"""``NVML_P2P_STATUS_OK``"""

# Reasons why a clock is below the requested one, by bit (nvml.h); idleness and application settings
# don't count.
THROTTLE_REASONS = {
    0x0000000000000004: "power cap",
    0x0000000000000008: "hardware slowdown",
    0x0000000000000020: "thermal slowdown by software",
    0x0000000000000040: "thermal slowdown by hardware",
    0x0000000000000080: "power brake",
}

POWER_CAP_BIT = 0x0000000000000004
"""The bit that is set while the power cap holds the clocks back."""
SLOWDOWN_BITS = sum(THROTTLE_REASONS) & ~POWER_CAP_BIT
"""All reasons except the power cap, which is normal for a large GPU under full load."""


class Nvml:
    """An open NVML.

    Args:
        library: the module ``pynvml``, or a replacement for tests.
    """

    def __init__(self, library: Any) -> None:
        self.library = library
        self._lost: set[int] = set()

    def ask(self, question: str, *about: Any) -> Any:
        """Query one value.

        The result is None if it is not supported or permitted, the GPU is lost, or the library is
        too old.
        """
        function = getattr(self.library, question, None)
        if function is None:
            return None
        try:
            return function(*about)
        except self.library.NVMLError as error:
            if getattr(error, "value", None) == _GPU_IS_LOST:
                self._lost.update(map(id, about[:1]))
            return None

    def is_lost(self, handle: Any) -> bool:
        """Whether a query reported that this GPU has fallen off the bus."""
        return id(handle) in self._lost

    def throttle_bits(self, handle: Any) -> int | None:
        """Return why its clocks are held back, as NVML's bit mask."""
        bits: int | None = self.ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if bits is None:  # its name before driver 535
            bits = self.ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return bits

    def handle(self, index: int) -> tuple[Any, str | None]:
        """Return the handle of a GPU, or why there is none.

        It may have fallen off the bus, or belong to another user.
        """
        try:
            return self.library.nvmlDeviceGetHandleByIndex(index), None
        except self.library.NVMLError as error:
            return None, str(error)


def read_driver(library: Any = None) -> Driver:
    """Read the current state of the driver and its GPUs.

    Args:
        library: ``pynvml`` by default.
    """
    library = library or importlib.import_module("pynvml")
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        return Driver(problem=str(error), vendor=NAME)
    try:
        nvml = Nvml(library)
        found = [nvml.handle(index) for index in range(nvml.ask("nvmlDeviceGetCount") or 0)]
        handles = [handle for handle, _ in found]
        cuda = nvml.ask("nvmlSystemGetCudaDriverVersion_v2")
        return Driver(
            _text(nvml.ask("nvmlSystemGetDriverVersion")),
            None if cuda is None else (cuda // 1000, cuda % 1000 // 10),
            tuple(
                Gpu(index, problem=problem) if problem else _gpu(nvml, index, handles)
                for index, (_, problem) in enumerate(found)
            ),
            vendor=NAME,
        )
    finally:
        library.nvmlShutdown()


def _gpu(nvml: Nvml, index: int, handles: list[Any]) -> Gpu:
    def ask(question: str, *more: Any) -> Any:
        return nvml.ask(question, handles[index], *more)

    processes = ask("nvmlDeviceGetComputeRunningProcesses")
    return Gpu(
        index,
        name=_text(ask("nvmlDeviceGetName")),
        uuid=_text(ask("nvmlDeviceGetUUID")),
        compute_capability=_map(ask("nvmlDeviceGetCudaComputeCapability"), tuple),
        memory_bytes=_map(ask("nvmlDeviceGetMemoryInfo"), _total_bytes),
        pci_width=_both(
            ask("nvmlDeviceGetCurrPcieLinkWidth"), ask("nvmlDeviceGetMaxPcieLinkWidth")
        ),
        pci_generation=_both(
            ask("nvmlDeviceGetCurrPcieLinkGeneration"), ask("nvmlDeviceGetMaxPcieLinkGeneration")
        ),
        persistence=_map(ask("nvmlDeviceGetPersistenceMode"), bool),
        power_limit_watts=_map(ask("nvmlDeviceGetEnforcedPowerLimit"), _watts),
        power_default_watts=_map(ask("nvmlDeviceGetPowerManagementDefaultLimit"), _watts),
        throttle_reasons=_map(nvml.throttle_bits(handles[index]), throttle_reasons),
        ecc_errors=ask("nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _SINCE_LOADED),
        temperature_celsius=ask("nvmlDeviceGetTemperature", TEMPERATURE_GPU),
        mig=_map(ask("nvmlDeviceGetMigMode"), _is_enabled),
        peers=_peers(nvml, index, handles),
        exclusive=_map(ask("nvmlDeviceGetComputeMode"), _is_exclusive),
        processes=_map(processes, _pids),
    )


def _total_bytes(memory: Any) -> int:
    return int(memory.total)


def _watts(milliwatts: int) -> float:
    return milliwatts * _MILLI


def _is_enabled(modes: Any) -> bool:
    """Whether MIG is on now; the second mode will hold after the next reset."""
    return bool(modes[0])


def _is_exclusive(mode: int) -> bool:
    return mode == _EXCLUSIVE_PROCESS


def _pids(processes: Any) -> tuple[int, ...]:
    return tuple(int(process.pid) for process in processes)


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """Return the reasons that are set in ``bits``."""
    return tuple(reason for bit, reason in THROTTLE_REASONS.items() if bits & bit)


def _peers(nvml: Nvml, index: int, handles: list[Any]) -> tuple[int, ...] | None:
    if len(handles) < 2:
        return None
    status = {
        other: nvml.ask("nvmlDeviceGetP2PStatus", handles[index], handle, _CAN_READ)
        for other, handle in enumerate(handles)
        if other != index and handle is not None
    }
    if all(each is None for each in status.values()):
        return None
    return tuple(other for other, each in status.items() if each == _P2P_OK)


def _map(answer: Any, change: Callable[[Any], Any]) -> Any:
    return None if answer is None else change(answer)


def _both(first: Any, second: Any) -> tuple[int, int] | None:
    return None if first is None or second is None else (int(first), int(second))


def _text(answer: Any) -> str | None:
    return answer.decode() if isinstance(answer, bytes) else answer
