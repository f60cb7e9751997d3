"""Parse a script's reports of its epochs: untrusted lines of JSON (docs/protocol.md)."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

from trainmark.execute.protocol.answers import (
    EpochEnded,
    Evaluated,
    MetricLogged,
    SliceTimed,
    StepsObserved,
    ThreadsTried,
    Waiting,
)
from trainmark.execute.protocol.wire import LONGEST_SECONDS
from trainmark.record.observed import Observed
from trainmark.workload.decode import decode

VERSION = 1
_T = TypeVar("_T")
_MOST_LINE_BYTES = 1 << 20
"""Most bytes of a line that is not complete yet, so that it can't fill the memory."""
_MOST_EPOCHS = 100_000
"""Most epochs that a command can report, so that a record has a limit."""
_COUNTED = ("syncs", "step_reads")
"""Figures of observed steps that hold a number for each line of the script."""
_MOST_THREADS = 100
"""Maximum number of entries in a report of a threads search."""
_MOST_LEFT_OUT = 10_000
"""Invalid lines after which only turns are read, to limit the cost of excessive output."""
_MOST_NAMES = 20
"""Most names of other logged figures that are passed on."""
_MOST_PAIRS = 200
"""Most logged values in a line."""
_MOST_TOLD = 3
"""Most invalid lines that a record quotes."""


@dataclasses.dataclass(frozen=True)
class ToBeEnded:
    """A training has all its slices or steps, and waits until trainmark ends the whole command."""


Report: TypeAlias = (
    "EpochEnded | Evaluated | MetricLogged | SliceTimed | StepsObserved | ThreadsTried"
    " | ToBeEnded | Waiting"
)
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


class Reports:
    """Parses lines into epochs, evaluations and slices, in the order of their ends.

    Invalid lines are counted and ignored.

    Args:
        edge: start of the command, in seconds from the record's origin.

    Attributes:
        left_out: number of ignored lines and values; ``odd`` describes the first few.
        not_finite: the figures of the last epoch that are not finite; None if all are.
        last_finite: the last finite training loss.
        paused_seconds: time spent waiting for turns.
    """

    def __init__(self, edge: float) -> None:
        self._edge = edge
        self._pending = b""
        self._epochs = 0
        self._windows: list[tuple[float, float]] = []
        self._evaluation = 0.0
        self._greeted = self._untested = False
        self._observed_last: StepsObserved | None = None
        self._step_times: tuple[tuple[float, ...], ...] = ()
        self._step_memory: tuple[tuple[float | None, ...], ...] = ()
        self.left_out = 0
        self.paused_seconds = 0.0
        self.odd: list[str] = []
        self.not_finite: str | None = None
        self.last_finite: float | None = None
        self.packages: dict[str, str] = {}
        self.counts_steps = False
        self.language: str | None = None
        self.ended_early = False

    def take(self, arrived: bytes, origin: float, now: float = math.inf) -> Iterator[Report]:
        """Yield the reports in the lines that have arrived.

        Args:
            origin: reading of the clock at which the record's times start.
            now: its reading on arrival; reports can't be later.
        """
        *lines, self._pending = (self._pending + arrived).split(b"\n")
        if len(self._pending) > _MOST_LINE_BYTES:
            self._leave_out("a line without an end")
            self._pending = b""
        for line in lines:
            # Turns are read in any case, or the other sides would wait forever.
            is_turn = re.search(rb'"(end|pause|resume|slice)"', line)
            if not line.strip() or not (self.left_out <= _MOST_LEFT_OUT or is_turn):
                continue
            message = _parsed(line)
            if message is None:
                self._leave_out(repr(line)[1:])
                continue
            if message.get("event") == "step_times":
                self._step_times = tuple(_step_times(message.get("parts")))
                continue
            if message.get("event") == "step_memory":
                self._step_memory = tuple(_step_memory(message.get("parts")))
                continue
            if message.get("event") == "logged":
                logged = self._logged(message)
                if logged is not None:
                    yield logged
                continue
            found = self._understood(message, origin, now)
            if isinstance(found, StepsObserved):
                self._observed_last = found
            elif isinstance(found, ToBeEnded) and self._observed_last is not None:
                # It may be another training than the one that is reported
                yield dataclasses.replace(self._observed_last, losses=[], ended_early=True)
            if found is not None:
                yield found

    def _understood(self, message: dict[str, Any], origin: float, clock: float) -> Report | None:
        """Return the report in a line; keeps its times and counts invalid values."""
        at = _number(message.get("t"))
        if at is None or not math.isfinite(at) or at - origin < self._edge or at > clock:
            self._leave_out(f"t {_shown(message.get('t'))} of {_shown(message.get('event'))}")
            return None
        now = at - origin
        event = message.get("event")
        packages = message.pop("packages", None)
        if isinstance(packages, dict):
            first = list(packages.items())[:50]
            self.packages = {
                name[:100]: version[:100] for name, version in first if isinstance(version, str)
            }
        found: Report | None = None
        if event == "hello":
            if self._greeted:  # a child process, such as a loader, also imports the hook
                return None
            language = message.get("language")
            self._greeted = True
            self.language = language[:100] if isinstance(language, str) else None
        elif event == "epoch" and message.get("index", self._epochs) == self._epochs < _MOST_EPOCHS:
            found = self._epoch(message, now)
        elif event == "test" and self._untested:
            found = self._test(message, now)
        elif event == "slice":
            return self._slice(message, origin, now)
        elif event == "observed":
            return self._observed(message)
        elif event == "threads":
            return self._threads(message)
        elif event == "evaluated":
            self._evaluation += _seconds(message.get("seconds")) or 0.0
            return None
        elif event == "end":
            return ToBeEnded()
        elif event == "pause":
            self._windows.append((self._edge, now - self._edge))
            self.counts_steps = message.get("counts_steps") is True
            found = Waiting(settled=message.get("settled") is True)
        elif event == "resume":
            self.paused_seconds += now - self._edge
        elif event == "begin":
            self._windows = []
            self._evaluation = 0.0
        else:
            index = _shown(message.get("index"))
            self._leave_out(f"event {_shown(event)}, index {index}, after {self._epochs} epochs")
            return None
        self._edge = now
        return found

    def _slice(self, message: dict[str, Any], origin: float, now: float) -> SliceTimed | None:
        start = _number(message.get("start"))
        seconds = _seconds(message.get("seconds"))
        steps = _count(message.get("steps"))
        if (
            start is None
            or not seconds
            or steps is None
            or not 0 <= start - origin <= now - seconds
        ):
            shown = f"{_shown(message.get('steps'))} steps in {_shown(message.get('seconds'))} s"
            self._leave_out(f"slice of {shown}")
            return None
        passes = _count(message.get("passes"))
        return SliceTimed(start - origin, steps, steps, seconds, None, passes)

    def _observed(self, message: dict[str, Any]) -> StepsObserved | None:
        losses = message.get("losses")
        fields = dict[str, Any]()
        for name, value in message.items():
            if isinstance(value, dict):
                of = int if name in _COUNTED else str
                fields[name] = {
                    str(key)[:200]: each for key, each in value.items() if isinstance(each, of)
                }
            elif name in Observed.__annotations__ and name != "losses":
                fields[name] = value
        numbers = map(_figure, losses) if isinstance(losses, list) else ()
        try:
            found = decode(StepsObserved, fields)
        except ValueError as error:
            self._leave_out(f"observed steps: {error}")
            return None
        self.ended_early = self.ended_early or found.ended_early
        known = [number for number in numbers if number is not None]
        return dataclasses.replace(
            found,
            losses=known,
            packages=self.packages,
            step_times=self._step_times,
            step_memory=self._step_memory,
        )

    def _threads(self, message: dict[str, Any]) -> ThreadsTried | None:
        """Return how long a step takes with each number of CPU threads."""
        chosen = _count(message.get("chosen"))
        default = _count(message.get("default"))
        found = message.get("step_seconds")
        tried: list[tuple[int, float]] = []
        for word, value in list(found.items())[:_MOST_THREADS] if isinstance(found, dict) else ():
            seconds = _seconds(value)
            if seconds and re.fullmatch(r"[1-9]\d{0,8}", word):
                tried.append((int(word), seconds))
        if chosen is None or default is None or not {chosen, default} <= dict(tried).keys():
            self._leave_out(f"threads {_shown(message.get('chosen'))} of {_shown(found)}")
            return None
        return ThreadsTried(chosen, default, tried)

    def _logged(self, message: dict[str, Any]) -> MetricLogged | None:
        """Return logged values of a figure."""
        tag = message.get("tag")
        count = _count(message.get("count"))
        others = message.get("others")
        if not isinstance(tag, str) or (tag and count is None):
            self._leave_out(f"logged {_shown(tag)}, {_shown(message.get('count'))} values")
            return None
        listed = others if isinstance(others, list) else ()
        names = [each[:100] for each in listed if isinstance(each, str)]
        return MetricLogged(
            tag[:100],
            count or 0,
            list(_pairs(message.get("values"))),
            list(_pairs(message.get("extremes"))),
            names[:_MOST_NAMES],
        )

    def _epoch(self, message: dict[str, Any], now: float) -> EpochEnded:
        index = self._epochs
        self._epochs = self._epochs + 1
        self._untested = True
        windows = [*self._windows, (self._edge, now - self._edge)]
        self._windows = []
        evaluation = self._evaluation
        self._evaluation = 0.0
        figures = self._figures(message, "train")
        self.not_finite = None
        self._look_at(figures)
        return EpochEnded(
            index=index,
            start=windows[0][0],
            seconds=max(math.fsum(seconds for _, seconds in windows) - evaluation, 0.0),
            windows=windows,
            batches=self._read(message, "batches", _count),
            steps=self._read(message, "steps", _count),
            examples=self._read(message, "examples", _count),
            data_wait_seconds=self._read(message, "data_wait_seconds", _seconds),
            train_loss=figures["train_loss"],
            train_accuracy=figures["train_accuracy"],
            packages=self.packages,
        )

    def _test(self, message: dict[str, Any], now: float) -> Evaluated:
        self._untested = False
        self._windows = []
        figures = self._figures(message, "test")
        self._look_at(figures)
        return Evaluated(self._epochs - 1, now - self._edge, **figures)

    def _figures(self, message: dict[str, Any], split: str) -> dict[str, float | None]:
        return {
            f"{split}_loss": self._read(message, "loss", _figure),
            f"{split}_accuracy": self._read(message, "accuracy", _fraction),
        }

    def _read(self, message: dict[str, Any], key: str, of: Callable[[Any], _T | None]) -> _T | None:
        """Return the value of a key; None if it is absent or, counted, if it is invalid."""
        value_given = message.get(key)
        value = None if value_given is None else of(value_given)
        if value_given is not None and value is None:
            self._leave_out(f"{key} {_shown(value_given)} of epoch {self._epochs}")
        return value

    def _leave_out(self, what: str) -> None:
        self.left_out += 1
        if len(self.odd) < _MOST_TOLD:
            self.odd.append(what[:100])

    def _look_at(self, figures: dict[str, float | None]) -> None:
        loss = figures.get("train_loss")
        odd = [
            name
            for name, value in figures.items()
            if value is not None and not math.isfinite(value)
        ]
        if odd:
            named = " and ".join(f"{name.replace('_', ' ')} {figures[name]}" for name in odd)
            self.not_finite = f"{named} was reported for epoch {self._epochs}"
        if loss is not None and math.isfinite(loss):
            self.last_finite = loss


_MOST_PARTS = 128
"""Most parts of a training whose shortest step is kept."""


def _step_times(parts: Any) -> Iterator[tuple[float, ...]]:
    """Yield the valid parts among those of a message: number, seconds and amount of a step."""
    for part in parts[:_MOST_PARTS] if isinstance(parts, list) else ():
        numbers = [_number(each) for each in part] if isinstance(part, list) else []
        if len(numbers) == 3 and all(each is not None and 0 <= each < 2**53 for each in numbers):
            step, seconds, amount = numbers
            yield step or 0.0, seconds or 0.0, amount or 0.0


def _step_memory(parts: Any) -> Iterator[tuple[float | None, ...]]:
    """Yield the valid readings of a message: number of a step, bytes of the process and device."""
    for part in parts[:_MOST_PARTS] if isinstance(parts, list) else ():
        if isinstance(part, list) and len(part) == 3:
            step, *sizes = [_number(each) for each in part]
            known = [each if each is None or 0 <= each < 2**53 else None for each in sizes]
            if step is not None and 0 < step < 2**53:
                yield step, *known


def _pairs(values: Any) -> Iterator[tuple[float, float]]:
    """Yield the valid pairs of a number of steps and a figure."""
    for pair in values[:_MOST_PAIRS] if isinstance(values, list) else ():
        if isinstance(pair, list) and len(pair) == 2:
            step = _number(pair[0])
            value = _figure(pair[1])
            if step is not None and value is not None:
                yield step, value


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and message.get("trainmark") == VERSION else None


def _number(value: Any) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _figure(value: Any) -> float | None:
    """Return a number; also from a word for NaN or infinity, as various languages write it."""
    if not isinstance(value, str):
        return _number(value)
    sign = -1.0 if value.startswith("-") else 1.0
    word = _NOT_FINITE.get(value.lstrip("+-").lower())
    return None if word is None else sign * word


def _fraction(value: Any) -> float | None:
    """Return an accuracy as a fraction; None if it is out of range, such as in percent."""
    figure = _figure(value)
    return None if figure is None or figure < 0 or figure > 1 else figure


def _count(value: Any) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value < 2**53 else None


def _seconds(value: Any) -> float | None:
    seconds = _number(value)
    return seconds if seconds is not None and 0 <= seconds <= LONGEST_SECONDS else None


def _shown(value: Any) -> str:
    """Format a value for the user; only the type of a deeply nested one."""
    try:
        return repr(value)
    except RecursionError:
        return f"of type {type(value).__name__}"
