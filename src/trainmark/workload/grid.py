"""A grid of hyper-parameters.

It defines what can be varied, how values are written, and the resulting workloads.

A key is one of :data:`NAMES`, or the path of any value of the workload, such as ``optimizer.rho``
or ``model[1].units``.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmark.errors import SpecError, UnknownName, UsageError
from trainmark.workload.decode import Misfit, Path, dotted
from trainmark.workload.layers import Attention, ChannelDropout, Dense, Dropout, Layer
from trainmark.workload.model import lay_out
from trainmark.workload.spec import Workload

Value = str | int | float | bool
Grid = Mapping[str, tuple[Value, ...]]

MOST_TRIALS = 10_000
"""Most trials of a grid; more are probably a typing error."""

SEED = "seed"
"""Name of the seed, which can be varied although it is no part of a workload."""
_PARTS = ("input", "model", "loss", "optimizer", "batches", "schedule", "metrics", "weight_average")
"""Parts of a workload that a path may start with; the others are names and published figures."""
_OPTIMIZER = ("learning_rate", "momentum", "weight_decay", "rho", "beta1", "beta2", "epsilon")


@dataclass(frozen=True)
class GridPoint:
    """One planned trial.

    Args:
        values: value of each key of the grid.
        workload: the workload with those values.
        seed: its seed; None uses the sweep's.
    """

    values: Mapping[str, Value]
    workload: Workload
    seed: int | None = None


def title(values: Mapping[str, Value]) -> str:
    """Format values as ``learning_rate=0.1 hidden=128``."""
    return " ".join(f"{key}={value}" for key, value in values.items())


def read_grid(words: Iterable[str]) -> dict[str, tuple[Value, ...]]:
    """Read a grid from words of the form ``KEY=v1,v2``, in order.

    Raises:
        UsageError: a word of another form, or a key or value given twice.
    """
    grid: dict[str, tuple[Value, ...]] = {}
    for word in words:
        key, sign, listed = word.partition("=")
        values = tuple(_read(text.strip()) for text in listed.split(","))
        if not (key and sign) or "" in values:
            raise UsageError(
                f"the grid {word!r} can't be read",
                expected="KEY=VALUE,VALUE, such as learning_rate=0.1,0.01",
            )
        if key in grid:
            raise UsageError(
                f"the grid has {key!r} twice", fix=f"Give all its values at once: {key}=A,B,C"
            )
        twice = [value for position, value in enumerate(values) if value in values[:position]]
        if twice:
            raise UsageError(
                f"the grid has {key}={twice[0]} twice",
                fix="Leave one out: it would be the same trial.",
            )
        grid[key] = values
    return grid


@dataclass(frozen=True)
class Range:
    """The range that values of a key are drawn from; integers if both bounds are.

    Args:
        log: whether the logarithm is uniformly distributed, instead of the value.
    """

    low: int | float
    high: int | float
    log: bool

    def draw(self, chance: random.Random) -> int | float:
        """Draw a value with 4 significant digits."""
        if self.log:
            value = math.exp(chance.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = chance.uniform(self.low, self.high)
        kind = int if isinstance(self.low, int) and isinstance(self.high, int) else float
        return kind(
            min(max(round(value) if kind is int else float(f"{value:.4g}"), self.low), self.high)
        )


def read_ranges(words: Iterable[str]) -> dict[str, Range]:
    """Read ranges from words of the form ``KEY=LOW..HIGH`` or ``KEY=LOW..HIGH:log``, in order.

    Raises:
        UsageError: a word of another form, or a key given twice.
    """
    ranges: dict[str, Range] = {}
    for word in words:
        read = _read_range(word)
        if read is None or read[0] in ranges:
            raise UsageError(
                f"the range {word!r} can't be read",
                expected="KEY=LOW..HIGH, each key once, such as learning_rate=0.001..0.1:log "
                "(:log is for LOW above 0)",
            )
        key, found = read
        ranges[key] = found
    return ranges


def _read_range(word: str) -> tuple[str, Range] | None:
    """Return the key and the range in a word; None if it has neither."""
    written = re.fullmatch(r"([^=]+)=(.+?)\.\.(.+?)(:log)?", word)
    if written is None:
        return None
    key = written[1]
    low = _read(written[2])
    high = _read(written[3])
    log = bool(written[4])
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return None
    if isinstance(low, bool) or isinstance(high, bool):
        return None
    if not low < high or (log and low <= 0):
        return None
    return key, Range(low, high, log)


def drawn(ranges: Mapping[str, Range], samples: int, seed: int) -> list[dict[str, Value]]:
    """Draw samples of all ranges.

    A larger number starts with the same samples. Without ranges, there is one empty sample.
    """
    chance = random.Random(seed)
    return [
        {key: each.draw(chance) for key, each in ranges.items()}
        for _ in range(samples if ranges else 1)
    ]


def points(
    workload: Workload, grid: Grid, samples: Sequence[Mapping[str, Value]] = ({},)
) -> list[GridPoint]:
    """Combine the grid's values with each of the samples, without duplicates.

    The grid's last key changes fastest.

    Raises:
        UnknownName: no workload has the key.
        SpecError: this workload doesn't have the key, or a value does not fit.
        UsageError: two keys set the same value, or there are too many trials.
    """
    for key in samples[0]:
        if key in grid:
            raise UsageError(f"{key} has both a grid and a range", fix="Leave one of them out.")
    targets = {key: _targets(workload, key) for key in (*grid, *samples[0])}
    total = len(samples) * math.prod(len(values) for values in grid.values())
    if total > MOST_TRIALS:
        raise UsageError(
            f"the grid has {total:,} trials",
            expected=f"{MOST_TRIALS:,} at most",
            fix="Use fewer values.",
        )
    for (key, paths), (other, others) in itertools.combinations(targets.items(), 2):
        for path in paths:
            if path in others:
                raise UsageError(
                    f"{key} and {other} both set {dotted(path)}", fix="Leave one of them out."
                )
    combinations = []
    for sample in samples:
        for values in itertools.product(*grid.values()):
            combinations.append({**dict(zip(grid, values, strict=True)), **sample})
    once = {title(values): values for values in combinations}  # an integer may be drawn twice
    return [_point(workload, values, targets) for values in once.values()]


def _point(
    workload: Workload, values: dict[str, Value], targets: Mapping[str, Sequence[Path]]
) -> GridPoint:
    data = dataclasses.replace(workload, published=None).to_data()
    for key, value in values.items():
        for path in targets[key]:
            _put(data, path, value)
        if key == "epochs":
            # Drop everything else that would limit the length of the run. Batches drawn with
            # replacement make no passes, so the workload keeps its own epoch.
            data["schedule"]["steps"] = None
            if workload.schedule.shuffle != "with-replacement":
                data["schedule"]["steps_per_epoch"] = None
    try:
        changed = Workload.from_data(data)
        lay_out(changed)
    except Misfit as misfit:
        raise _unfit(workload, values, targets, misfit) from None
    return GridPoint(values, changed, _seed(values))


def _seed(values: Mapping[str, Value]) -> int | None:
    seed = values.get(SEED)
    if seed is None:
        return None
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise SpecError(
            f"the seed {seed!r} does not fit", expected="a whole number from 0", found=repr(seed)
        )
    return seed


def _unfit(
    workload: Workload,
    values: Mapping[str, Value],
    targets: Mapping[str, Sequence[Path]],
    misfit: Misfit,
) -> SpecError:
    """Return an error that names the value at fault, if one is, and what would be right."""
    blamed = [key for key in values if misfit.path in targets[key]]
    what = f"{blamed[0]}={values[blamed[0]]}" if blamed else title(values)
    where = "" if blamed and blamed[0] == dotted(misfit.path) else f" at {dotted(misfit.path)}"
    return SpecError(
        f"the grid's {what} does not fit {workload.name}{where}",
        expected=misfit.expected,
        found=misfit.found,
    )


def _read(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", text):
        return float(text)
    return text


def _put(data: dict[str, Any], path: Path, value: Value) -> None:
    place: Any = data
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value


NAMES = (*_OPTIMIZER, "batch_size", "epochs", "steps", "hidden", "dropout")
"""Short names of values. ``seed`` is one more, but sets the run's seed."""


def _named(workload: Workload, name: str) -> list[Path]:
    """Return the paths that a short name sets.

    ``hidden`` is the width of every dense layer except the last.
    """
    layers = list(_placed(workload.model, ("model",)))
    widths: list[Path] = [
        (*path, "units") for path, of in layers if isinstance(of, Dense) and len(path) == 2
    ]
    match name:
        case "batch_size":
            return [("batches", "size")]
        case "epochs" | "steps":
            return [("schedule", name)]
        case "hidden":
            return widths[:-1]
        case "dropout":
            rates: list[Path] = [
                (*path, "rate") for path, of in layers if isinstance(of, (Dropout, ChannelDropout))
            ]
            return rates + [(*path, "dropout") for path, of in layers if isinstance(of, Attention)]
        case _:
            return [("optimizer", name)] if hasattr(workload.optimizer, name) else []


def _placed(layers: Iterable[Layer], path: Path) -> Iterator[tuple[Path, Layer]]:
    """Yield each layer, those inside others too, with its path."""
    for index, layer in enumerate(layers):
        yield (*path, index), layer
        for name in ("layers", "body", "shortcut"):
            yield from _placed(getattr(layer, name, ()), (*path, index, name))


def _targets(workload: Workload, key: str) -> list[Path]:
    """Return the paths that ``key`` sets; none for the seed, which is not part of a workload."""
    if key == SEED:
        return []
    if key in NAMES:
        found = _named(workload, key)
        if not found:
            names = [name for name in NAMES if _named(workload, name)]
            raise SpecError(
                f"{workload.name} has no {key}", expected=f"one of {', '.join([*names, SEED])}"
            )
        return found
    paths = {dotted(path): path for path in _leaves(workload)}
    if key not in paths:
        root = re.split(r"[.\[]", key)[0]
        near = [path for path in paths if path.startswith(root)] if root != key else []
        raise UnknownName(
            "grid key",
            key,
            near or [*NAMES, SEED],
            otherwise="Or the path of a value: model[1].units",
        )
    return [paths[key]]


def _leaves(workload: Workload) -> Iterator[Path]:
    """Yield the path of every value of the workload that can be varied."""

    def below(place: Any, path: Path) -> Iterator[Path]:
        if isinstance(place, dict):
            for key, part in place.items():
                yield from below(part, (*path, key))
        elif isinstance(place, (list, tuple)):
            for index, part in enumerate(place):
                if isinstance(part, dict):  # a list of numbers is one value, such as a shape
                    yield from below(part, (*path, index))
        else:
            yield path

    data = workload.to_data()
    for part in _PARTS:
        for path in below(data[part], (part,)):
            # The protocol can't be varied, since all trials are fresh.
            if path != ("schedule", "protocol"):
                yield path
