"""Where a training spends its time, by sampling the training thread.

Each sample shows the part of the step and the user's line.
"""

from __future__ import annotations

import contextlib
import gc
import heapq
import itertools
import random
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .known import OF_LOADING, names_of
from .library import function_of

EVALUATION = "evaluation"
"""Name of the part for samples during an evaluation."""
LOADER = "loader"
"""Name of the part in which batches are loaded."""
_PARTS = {
    "torch/utils/data/dataloader.py": LOADER,
    "torch/utils/data/_utils/fetch.py": LOADER,
    "torch/autograd/__init__.py": "backward",
    "torch/autograd/graph.py": "backward",
    "torch/optim/optimizer.py": "optimizer",
    "torch/serialization.py": "saving",
    "torch/nn/modules/module.py": "forward",
    "torch/nn/functional.py": "forward",
}
"""What PyTorch does while its own file is on the stack; the innermost one tells."""
_OWN = "your own code"
"""Name of the part for samples outside PyTorch's own functions."""
_SWITCH_SECONDS = 0.0001
"""How long Python lets the training run on before it takes a sample; with the usual 5 ms, code of
many short operations would end before it is seen."""
_TELL_EVERY = 20
"""Number of samples between two reports."""
_TELL_EARLY = (2, 5, 10)
"""Numbers of samples after which the first reports come, since a step may take long."""
_WAITING = "workers"
"""Name of the known function in which a training waits for the processes that load batches."""
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
        known: names of known functions that it is in.
    """

    place: str | None
    part: str
    inside: str | None
    known: set[str]


class Loaded(NamedTuple):
    """Numbers of samples of a worker process of a loader.

    Args:
        total: all samples.
        lines: those of each of the user's lines.
        known: those in each known function, by the user's line.
    """

    total: int
    lines: dict[str, int]
    known: dict[str, dict[str, int]]


def stack(observer: Any) -> list[str]:
    """Return the user's lines that are being executed, the innermost first."""
    return [
        observer.users_place(frame)
        for frame in _frames(sys._getframe(1))
        if observer.is_users(frame)
    ]


def sample(
    observer: Any,
    on_sampled: Callable[[Samples], None],
    is_evaluated: Callable[[], bool] = bool,
    is_apart: Callable[[], bool] = bool,
) -> None:
    """Start to sample the calling thread.

    Args:
        observer: knows which code is the user's, and whether it evaluates.
        on_sampled: called now and then with all samples so far.
        is_evaluated: tells whether what is being loaded is for an evaluation.
        is_apart: tells whether what is being done is no part of the training.
    """
    thread = threading.get_ident()
    samples = Samples()

    def run() -> None:
        for pause in pauses():
            time.sleep(pause)
            if is_apart():
                continue
            samples.add(_now(observer, thread, is_evaluated))
            if samples.total in _TELL_EARLY or (samples.total and samples.total % _TELL_EVERY == 0):
                on_sampled(samples)

    on_sampled(samples)
    sys.setswitchinterval(_SWITCH_SECONDS)
    threading.Thread(target=run, daemon=True).start()


class Samples:
    """The samples of a thread so far; those without a line of the user's don't count."""

    def __init__(self) -> None:
        self.total = 0
        self._lines: Counter[str] = Counter()
        self._parts: Counter[str] = Counter()
        self._own: Counter[str] = Counter()
        self._loading: set[str] = set()
        self._waits: Counter[str] = Counter()
        self._times: list[Counter[str]] = []
        self._inside: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._known: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._known_times: list[Counter[str]] = []

    def add(self, sample: _Sample) -> None:
        """Count a sample."""
        place = sample.place
        if place is None:
            return
        if self.total % _IN_A_PART == 0:
            self._times.append(Counter())
            self._known_times.append(Counter())
        self.total += 1
        self._times[-1][place] += 1
        self._lines[place] += 1
        self._parts[sample.part] += 1
        if sample.inside is not None:
            self._inside[place][sample.inside] += 1
        self._known_times[-1].update(sample.known)
        for name in sample.known:
            self._known[name][place] += 1
        if sample.part == _OWN:
            self._own[place] += 1
        elif sample.part == LOADER:
            self._loading.add(place)
            self._waits[place] += _WAITING in sample.known

    def facts(self, loaded: Sequence[Loaded] = ()) -> dict[str, Any]:
        """Return what is known from the samples; nothing if there are none.

        It has the number of ``samples``, the shares of ``lines``, of ``parts`` of the step, and of
        lines in the user's ``own`` code, outside of those parts; the lines that run in ``loading``;
        the shares of lines in the first and in the last third of the samples, ``early`` and
        ``late``; and the shares of what runs ``inside`` of the slowest line, which has called a
        library. ``known`` has the share of each known function that a sample was in,
        ``known_late`` the same in the last third, and ``known_at`` the line below which it mostly
        was.

        Args:
            loaded: what the processes that load batches did. The time in which the training waits
                for them counts as that of their lines.
        """
        if not self.total:
            return {}
        third = len(self._times) // 3
        at, lines = self._with(loaded)
        slowest = max(lines, key=lines.__getitem__)
        known = {name: sum(places.values()) for name, places in at.items()}
        loading = {*self._loading, *itertools.chain(*(each.lines for each in loaded))}
        return {
            "samples": self.total,
            "lines": _shares(lines, self.total),
            "parts": _shares(self._parts, self.total),
            "own": _shares(self._own, self.total),
            "loading": sorted(loading)[:_MOST],
            "early": _shares_of(self._times[:third]),
            "late": _shares_of(self._times[len(self._times) - third :]),
            "inside": _shares(self._inside[slowest], self.total),
            "known": _shares(known, self.total),
            "known_late": _shares(
                sum(self._known_times[len(self._times) - third :], Counter()),
                max(sum(sum(each.values()) for each in self._times[len(self._times) - third :]), 1),
            ),
            "known_at": {name: max(places, key=places.__getitem__) for name, places in at.items()},
        }

    def _with(
        self, loaded: Sequence[Loaded]
    ) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
        """Return the samples in known functions and in lines, with those of other processes."""
        known: defaultdict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for name, places in self._known.items():
            known[name].update(places)
        lines: dict[str, float] = defaultdict(float, self._lines)
        total = sum(each.total for each in loaded)
        each_counts = sum(self._waits.values()) / max(total, 1)
        named = sum(sum(each.lines.values()) for each in loaded)
        for place, number in self._waits.items():
            lines[place] -= number * named / max(total, 1)
        for each in loaded:
            for place, number in each.lines.items():
                lines[place] += number * each_counts
            for name, of_process in each.known.items():
                for place, number in of_process.items():
                    known[name][place] += number * each_counts
        return known, lines


def _shares_of(counts: list[Counter[str]]) -> dict[str, float]:
    """Return the largest shares in several parts of the training."""
    found: Counter[str] = Counter()
    for each in counts:
        found.update(each)
    return _shares(found, sum(found.values()))


def _shares(counts: Mapping[str, float], total: float) -> dict[str, float]:
    """Return the largest shares of a number of samples."""
    largest = heapq.nlargest(_MOST, counts, key=counts.__getitem__)
    return {each: counts[each] / total for each in largest}


def pauses() -> Iterator[float]:
    """Yield uneven pauses, since steps may take as long as the time between two samples."""
    drawn = random.Random(0)
    while True:
        yield drawn.uniform(0.002, 0.008)


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Keep Python's collector off while the frames of another thread are read.

    Reading a frame may otherwise run finalizers; the thread then runs on, and the frame is freed.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _now(observer: Any, thread: int, is_evaluated: Callable[[], bool] = bool) -> _Sample:
    """Return what a thread executes."""
    with without_collector():
        frame = sys._current_frames().get(thread)
        place = observer.users_place(frame)
        # The first batch after an evaluation is loaded before the observer knows of its end.
        part, calls_users = _part(frame, observer)
        inside = function_of(frame)
        if inside is not None and not calls_users and part not in (_OWN, "forward"):
            inside = part
        names = names_of(frame)
    if is_evaluated() if part == LOADER else observer.evaluates_since is not None:
        part = EVALUATION
    return _Sample(place, part, inside, names if part == LOADER else names - OF_LOADING)


def _part(frame: Any, observer: Any) -> tuple[str, bool]:
    """Return the part of the step, and whether it has called the user's code."""
    of_user = False
    # A network's method that is called as a function has no other sign of what it is.
    unnamed = _OWN
    for each in _frames(frame):
        name = each.f_code.co_filename
        for ending, part in _PARTS.items():
            if name.endswith(ending):
                return part, of_user
        if of_user and "torch/optim/" in name:  # it may be a closure, as in Lightning
            return _OWN, True
        if observer.is_users(each):
            if each.f_code.co_name == "forward":
                unnamed = "forward"
            of_user = True
    return unnamed, of_user


def _frames(frame: Any) -> Any:
    while frame is not None:
        yield frame
        frame = frame.f_back
