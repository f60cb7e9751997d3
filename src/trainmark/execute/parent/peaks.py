"""The measured peaks of each device.

They are measured once, then cached for this machine and these versions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from trainmark.backends.base import ResourceLimits
from trainmark.backends.peaks import METHOD
from trainmark.errors import ProtocolError
from trainmark.execute.parent.machine_state import MachineState
from trainmark.execute.parent.plan import Side
from trainmark.execute.parent.probe import Seen
from trainmark.execute.parent.process import THREAD_VARIABLES, ask
from trainmark.execute.parent.time_limit import NO_LIMIT, TimeLimit
from trainmark.execute.protocol.answers import PeaksMeasured, of_kind
from trainmark.execute.protocol.worker_commands import MeasurePeaks
from trainmark.record.record import Peaks
from trainmark.regular import write_atomically

TIMEOUT_SECONDS = 120.0
"""Seconds after which the process that measures peaks is ended."""
_SHARE_OF_LIMIT = 0.25
"""Share of the time left after which it is ended, too: trainings matter more."""
_FEWEST_SECONDS = 2.0
"""Seconds below which it is not started, since it would not even import a framework."""

_DECIDING = (
    *THREAD_VARIABLES,
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "XLA_FLAGS",
    "TF_XLA_FLAGS",
    "TF_ENABLE_ONEDNN_OPTS",
    "NVIDIA_TF32_OVERRIDE",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
)
"""Environment variables that change how fast a device is."""

PeakKey = tuple[Side, "int | None"]
"""A side and its threads. Peaks depend on these, not on the workload."""


@dataclass(frozen=True)
class Keep:
    """Cache of measured peaks: one file per set of conditions.

    Args:
        folder: made when it is needed.
    """

    folder: Path

    def find(self, conditions: Mapping[str, Any]) -> Peaks | None:
        """Return what was measured under the same conditions.

        The result is None if there is nothing, or it can't be read.
        """
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


@dataclass(frozen=True)
class _Place:
    """What a peak depends on.

    Args:
        side: one of the sides with this peak.
        threads: its CPU threads.
        conditions: everything else that is known beforehand.
        state: state of the machine.
    """

    side: Side
    threads: int | None
    conditions: Mapping[str, Any]
    state: MachineState

    @property
    def is_disturbed(self) -> bool:
        """Whether other programs use the machine or the device."""
        return self.state.is_busy or self.state.is_shared(self.state.gpu(self.side.device))

    @property
    def process(self) -> tuple[Any, ...]:
        """What two places must have in common to be measured by the same process."""
        return self.side.backend, self.side.interpreter.path, self.side.precision, self.threads


def find_peaks(
    places: Iterable[PeakKey],
    seen: Mapping[tuple[str, str], Seen],
    keep: Keep,
    read_state: Callable[[], MachineState],
    measuring: Callable[[str], None] | None = None,
    *,
    only_kept: bool = False,
    limit: TimeLimit = NO_LIMIT,
) -> dict[PeakKey, Peaks]:
    """Return the peaks of every side whose backend can measure them.

    Peaks measured while other programs used the machine or the device are measured again once both
    are idle.

    Args:
        read_state: reads the machine's state.
        measuring: called with what is being measured, which takes a few seconds.
        only_kept: whether to return only peaks that were measured before.
        limit: when the command has to end; peaks that would take much of the time left are not
            measured.
    """
    state = read_state()
    wanted: dict[PeakKey, str] = {}
    by_name: dict[str, _Place] = {}
    for side, threads in dict.fromkeys(places):
        capable = seen[side.backend, side.interpreter.label]
        if capable.limited:
            conditions = _conditions(side, threads, capable, state)
            name = json.dumps(conditions, sort_keys=True)
            wanted[side, threads] = name
            by_name.setdefault(name, _Place(side, threads, conditions, state))
    found: dict[str, Peaks] = {}
    to_measure: dict[tuple[Any, ...], dict[str, _Place]] = {}
    for name, place in by_name.items():
        kept = keep.find(place.conditions)
        if kept is not None:
            found[name] = kept
        if not only_kept and (kept is None or (kept.disturbed and not place.is_disturbed)):
            to_measure.setdefault(place.process, {})[name] = place
    for group in to_measure.values():
        seconds = min(_SHARE_OF_LIMIT * limit.left, TIMEOUT_SECONDS)
        if seconds < _FEWEST_SECONDS:
            break
        sides = [place.side for place in group.values()]
        devices = " and ".join(str(side.device) for side in sides)
        if measuring is not None:
            measuring(f"{devices} with {sides[0].backend}, {sides[0].precision}")
        for device, peaks in _measure(list(group.values()), seconds):
            name, place = next(item for item in group.items() if item[1].side.device == device)
            found[name] = peaks
            keep.put(place.conditions, peaks)
    return {key: found[name] for key, name in wanted.items() if name in found}


def _conditions(side: Side, threads: int | None, seen: Seen, state: MachineState) -> dict[str, Any]:
    """Return everything that a peak depends on and that is known before it is measured."""
    device = seen.device(side.device)
    machine = state.machine
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
        "gpu_watts": state.power_limit(state.gpu(side.device)),
        "environment": {name: os.environ[name] for name in _DECIDING if name in os.environ},
    }


def _measure(places: Sequence[_Place], seconds: float) -> Iterator[tuple[str, Peaks]]:
    """Measure the peaks of several devices in one process, for at most some ``seconds``.

    The start of a process takes longest on a machine with a GPU.

    Yields:
        Each device with its peaks; nothing for devices that the backend can't measure or that come
        after a crash.
    """
    first = places[0].side
    threads = places[0].threads
    limits = ResourceLimits(threads=threads)
    options = tuple(
        dataclasses.replace(place.side, style="fast").options(0, limits) for place in places
    )
    request = MeasurePeaks(first.backend, options)
    try:
        received, _ = ask(first.interpreter.path, request, threads=threads, timeout=seconds)
    except (ProtocolError, OSError):
        return  # The run itself will report what is wrong with this interpreter.
    for answer in of_kind(received, PeaksMeasured):
        place = next(place for place in places if place.side.device == answer.device)
        more = {
            "matmul_size": answer.peaks.matmul_size,
            "copied_bytes": answer.peaks.copied_bytes,
            "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "load_before": place.state.machine.load_before,
            "disturbed": place.is_disturbed,
        }
        peaks = Peaks(
            answer.peaks.matmul_flops_per_second,
            answer.peaks.copy_bytes_per_second,
            {**place.conditions, **more},
        )
        yield answer.device, peaks
