"""Where a training spends its time, by sampling the training thread.

Each sample shows the part of the step and the user's line.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .library import function_of

_PARTS = {
    "torch/utils/data/dataloader.py": "loader",
    "torch/autograd/__init__.py": "backward",
    "torch/autograd/graph.py": "backward",
    "torch/optim/optimizer.py": "optimizer",
    "torch/serialization.py": "saving",
    "torch/nn/modules/module.py": "forward",
    "torch/nn/functional.py": "forward",
}
"""What PyTorch does while its own file is on the stack; the innermost one tells."""
_EVALUATION = "evaluation"
"""Name of the part for samples during an evaluation."""
_OWN = "your own code"
"""Name of the part for samples outside PyTorch's own functions."""
_SWITCH_SECONDS = 0.0001
"""How long Python lets the training run on before it takes a sample; with the usual 5 ms, code of
many short operations would end before it is seen."""
_TELL_EVERY = 20
"""Number of samples between two reports."""
_MOST = 20
"""Most lines in a report."""
_IN_A_PART = 20
"""Number of samples in a part of the training, of which the first and the last ones are compared.
"""


class _Sample(NamedTuple):
    """What a thread is doing.

    Args:
        place: the user's line; None if there is none.
        part: the part of the step.
        inside: the function of a library below that line, or the part that a library calls; None
            if the line calls no library but the framework.
    """

    place: str | None
    part: str
    inside: str | None


def stack(observer: Any) -> list[str]:
    """Return the user's lines that are being executed, the innermost first."""
    return [
        observer.users_place(frame)
        for frame in _frames(sys._getframe(1))
        if observer.is_users(frame)
    ]


def sample(observer: Any, on_sampled: Callable[[dict[str, Any]], None]) -> None:
    """Start to sample the calling thread.

    Calls ``on_sampled`` now and then with the number of ``samples``, the shares of ``lines``, of
    ``parts`` of the step, and of lines in the user's ``own`` code, outside of those parts; with the
    lines that run in ``loading``; with the shares of lines in the first and in the last third of
    the samples, ``early`` and ``late``; and with the shares of what runs ``inside`` of the slowest
    line, which has called a library.
    """
    thread = threading.get_ident()

    def run() -> None:
        counts: dict[str, Counter[str]] = {name: Counter() for name in ("lines", "parts", "own")}
        loading: set[str] = set()
        times: list[Counter[str]] = []
        below: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for pause in _pauses():
            time.sleep(pause)
            place, part, inside = _now(observer, thread)
            if place is None:
                continue
            if sum(counts["lines"].values()) % _IN_A_PART == 0:
                times.append(Counter())
            times[-1][place] += 1
            counts["lines"][place] += 1
            counts["parts"][part] += 1
            if inside is not None:
                below[place][inside] += 1
            if part == _OWN:
                counts["own"][place] += 1
            elif part == "loader":
                loading.add(place)
            total = sum(counts["parts"].values())
            if total % _TELL_EVERY == 0:
                third = len(times) // 3
                shares = {name: _shares(found, total) for name, found in counts.items()}
                shares["early"] = _shares_of(times[:third])
                shares["late"] = _shares_of(times[len(times) - third :])
                slowest = max(counts["lines"], key=counts["lines"].__getitem__)
                shares["inside"] = _shares(below[slowest], total)
                on_sampled({**shares, "samples": total, "loading": sorted(loading)[:_MOST]})

    on_sampled({})
    sys.setswitchinterval(_SWITCH_SECONDS)
    threading.Thread(target=run, daemon=True).start()


def _shares_of(counts: list[Counter[str]]) -> dict[str, float]:
    """Return the largest shares in several parts of the training."""
    found: Counter[str] = Counter()
    for each in counts:
        found.update(each)
    return _shares(found, sum(found.values()))


def _shares(counts: Counter[str], total: int) -> dict[str, float]:
    """Return the largest shares of a number of samples."""
    return {each: number / total for each, number in counts.most_common(_MOST)}


def _pauses() -> Iterator[float]:
    """Yield uneven pauses, since steps may take as long as the time between two samples."""
    drawn = random.Random(0)
    while True:
        yield drawn.uniform(0.002, 0.008)


def _now(observer: Any, thread: int) -> _Sample:
    """Return what a thread executes."""
    collects = gc.isenabled()
    # Reading a frame may otherwise run finalizers; the thread then runs on, and the frame is freed.
    gc.disable()
    try:
        frame = sys._current_frames().get(thread)
        place = observer.users_place(frame)
        # The first batch after an evaluation is loaded before the observer knows of its end.
        part = _part(frame, observer)
        inside = function_of(frame)
        if inside is not None and part not in (_OWN, "forward"):
            inside = part
    finally:
        if collects:
            gc.enable()
    if observer.evaluates_since is not None and part != "loader":
        part = _EVALUATION
    return _Sample(place, part, inside)


def _part(frame: Any, observer: Any) -> str:
    of_user = False
    for each in _frames(frame):
        name = each.f_code.co_filename
        for ending, part in _PARTS.items():
            if name.endswith(ending):
                return part
        if of_user and "torch/optim/" in name:  # it may be a closure, as in Lightning
            return _OWN
        of_user = of_user or observer.is_users(each)
    return _OWN


def _frames(frame: Any) -> Any:
    while frame is not None:
        yield frame
        frame = frame.f_back
