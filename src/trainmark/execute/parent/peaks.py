"""The measured peaks of each device: measured once, then cached for this machine and these versions."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from trainmark.backends.base import ResourceLimits
from trainmark.backends.limits import METHOD
from trainmark.errors import ProtocolError
from trainmark.execute.parent.here import Here
from trainmark.execute.parent.plan import Side
from trainmark.execute.parent.probe import Seen
from trainmark.execute.parent.process import THREAD_VARIABLES, ask
from trainmark.execute.protocol.answers import PeaksMeasured, of_kind
from trainmark.execute.protocol.requests import MeasurePeaks
from trainmark.record.record import Peaks
from trainmark.regular import write_atomically

TIMEOUT_SECONDS = 120.0

_DECIDING = (
    *THREAD_VARIABLES, "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "XLA_FLAGS", "TF_XLA_FLAGS", "TF_ENABLE_ONEDNN_OPTS",
    "NVIDIA_TF32_OVERRIDE", "CUDA_VISIBLE_DEVICES", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
)  # fmt: skip
"""Environment variables that change how fast a device is."""

Key = tuple[Side, "int | None"]
"""A side and its threads. Peaks depend on these, not on the workload."""


@dataclass(frozen=True)
class Keep:
    """Cache of measured peaks: one file per set of conditions.

    Args:
        folder: made when it is needed.
    """

    folder: Path

    def find(self, conditions: Mapping[str, Any]) -> Peaks | None:
        """Return what was measured under the same conditions; None if there is nothing, or it can't be read."""
        try:
            return msgspec.json.decode(self._file(conditions).read_bytes(), type=Peaks)
        except (OSError, msgspec.MsgspecError):
            return None

    def put(self, conditions: Mapping[str, Any], peaks: Peaks) -> None:
        """Save ``peaks``. If the folder is not writable, they are measured again next time."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._file(conditions), msgspec.json.encode(peaks))

    def _file(self, conditions: Mapping[str, Any]) -> Path:
        name = hashlib.sha256(json.dumps(conditions, sort_keys=True).encode()).hexdigest()
        return self.folder / f"{name[:24]}.json"


def find_peaks(
    places: Iterable[Key],
    seen: Mapping[tuple[str, str], Seen],
    keep: Keep,
    look_around: Callable[[], Here],
    measuring: Callable[[str], None] = lambda _: None,
) -> dict[Key, Peaks]:
    """Return the peaks of every side whose backend can measure them.

    Peaks measured while other programs used the machine or the device are measured again once both are idle.

    Args:
        look_around: reads the machine's state.
        measuring: called with what is being measured, which takes a few seconds.
    """
    found: dict[Key, Peaks] = {}
    measured: dict[str, Peaks | None] = {}
    for side, threads in dict.fromkeys(places):
        said = seen[side.backend, side.interpreter.label]
        if not said.limited:
            continue
        here = look_around()
        conditions = _conditions(side, threads, said, here)
        place = json.dumps(conditions, sort_keys=True)
        if place not in measured:
            kept, disturbed = keep.find(conditions), here.is_busy or here.is_shared(here.gpu(side.device))
            if kept is None or (kept.disturbed and not disturbed):
                measuring(f"{side.device} with {side.backend}, {side.precision}")
                kept = _measure(side, threads, conditions, here, disturbed=disturbed) or kept
                if kept is not None:
                    keep.put(conditions, kept)
            measured[place] = kept
        if (peaks := measured[place]) is not None:
            found[side, threads] = peaks
    return found


def _conditions(side: Side, threads: int | None, seen: Seen, here: Here) -> dict[str, Any]:
    """Return everything that a peak depends on and that is known before it is measured."""
    device, machine = seen.device(side.device), here.machine
    return {
        "method": METHOD,
        "backend": side.backend,
        "version": side.version,
        "packages": seen.can.packages if seen.can else {},
        "python": str(side.interpreter.path),
        "device": side.device,
        "device_name": device.name if device and device.kind == "accelerator" else machine.cpu,
        "precision": side.precision,
        "threads": threads,
        "machine": machine.name,
        "cores": machine.usable_cores,
        "cpu_quota": machine.cpu_quota,
        "cpu_governors": machine.cpu_governors,
        "cpu_turbo": machine.cpu_turbo,
        "gpu_driver": machine.gpu_driver,
        "gpu_watts": here.power_limit(here.gpu(side.device)),
        "environment": {name: os.environ[name] for name in _DECIDING if name in os.environ},
    }


def _measure(
    side: Side, threads: int | None, conditions: dict[str, Any], here: Here, *, disturbed: bool
) -> Peaks | None:
    """Measure peaks in a separate process; None if the backend can't, or the process died."""
    options = dataclasses.replace(side, style="fast").options(0, ResourceLimits(threads=threads))
    request = MeasurePeaks(side.backend, options)
    try:
        heard, _ = ask(side.interpreter.path, request, threads=threads, timeout=TIMEOUT_SECONDS)
    except (ProtocolError, OSError):  # the run itself will report what is wrong with this interpreter
        return None
    found = next((answer.peaks for answer in of_kind(heard, PeaksMeasured)), None)
    if found is None:
        return None
    more = {
        "matmul_size": found.matmul_size,
        "copied_bytes": found.copied_bytes,
        "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "load_before": here.machine.load_before,
        "disturbed": disturbed,
    }
    return Peaks(found.matmul_flops_per_second, found.copy_bytes_per_second, conditions | more)
