"""A grid of hyper-parameters: what may be varied, how its values are written, and the workloads that come of it.

A key is one of :data:`NAMES`, or the path of any value of the workload, such as ``optimizer.rho`` or
``model[1].units``.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmark.errors import SpecError, UnknownName, UsageError
from trainmark.workload.decode import Misfit, Path, dotted
from trainmark.workload.layers import ChannelDropout, Dense, Dropout
from trainmark.workload.model import lay_out
from trainmark.workload.spec import Workload

Value = str | int | float | bool
Grid = Mapping[str, tuple[Value, ...]]

MOST_TRIALS = 10_000
"""More are a slip of the keyboard."""

SEED = "seed"
_PARTS = ("input", "model", "loss", "optimizer", "batches", "schedule", "metrics", "weight_average")
"""Of a workload, what a path may lead into; the rest says what it is called, and what was published about it."""
_OPTIMIZER = ("learning_rate", "momentum", "weight_decay", "rho", "beta1", "beta2", "epsilon")


@dataclass(frozen=True)
class Point:
    """One trial to be.

    Args:
        values: of the grid's keys.
        workload: with those values.
        seed: None is the sweep's own.
    """

    values: Mapping[str, Value]
    workload: Workload
    seed: int | None = None

    @property
    def title(self) -> str:
        """Its values, for people."""
        return title(self.values)


def title(values: Mapping[str, Value]) -> str:
    """``learning_rate=0.1 hidden=128``."""
    return " ".join(f"{key}={value}" for key, value in values.items())


def read_grid(words: Iterable[str]) -> dict[str, tuple[Value, ...]]:
    """The grid written as ``KEY=v1,v2``, in order.

    Raises:
        UsageError: something that is not written so, a key or a value given twice.
    """
    grid: dict[str, tuple[Value, ...]] = {}
    for word in words:
        key, sign, listed = word.partition("=")
        values = tuple(_read(text.strip()) for text in listed.split(","))
        if not (key and sign) or "" in values:
            raise UsageError(
                f"the grid {word!r} can't be read", expected="KEY=VALUE,VALUE such as learning_rate=0.1,0.01"
            )
        if key in grid:
            raise UsageError(f"the grid has {key!r} twice", fix=f"Give all its values at once: {key}=A,B,C")
        twice = [value for position, value in enumerate(values) if value in values[:position]]
        if twice:
            raise UsageError(f"the grid has {key}={twice[0]} twice", fix="Leave one out: it would be the same trial.")
        grid[key] = values
    return grid


def points(workload: Workload, grid: Grid) -> list[Point]:
    """Every combination of the grid's values, the last key changing fastest.

    Raises:
        UnknownName: a key that no workload has.
        SpecError: a key that this workload has not, or a value that does not fit.
        UsageError: two keys that say the same, or far too many trials.
    """
    targets = {key: _targets(workload, key) for key in grid}
    total = 1
    for values in grid.values():
        total *= len(values)
    if total > MOST_TRIALS:
        raise UsageError(
            f"the grid has {total:,} trials", expected=f"{MOST_TRIALS:,} at most", fix="Give fewer values."
        )
    for (key, paths), (other, others) in itertools.combinations(targets.items(), 2):
        for path in paths:
            if path in others:
                raise UsageError(f"{key} and {other} both set {dotted(path)}", fix="Leave one of them out.")
    combinations = itertools.product(*grid.values())
    return [_point(workload, dict(zip(grid, values, strict=True)), targets) for values in combinations]


def _point(workload: Workload, values: dict[str, Value], targets: Mapping[str, Sequence[Path]]) -> Point:
    data = dataclasses.replace(workload, published=None).to_data()
    for key, value in values.items():
        for path in targets[key]:
            _put(data, path, value)
        if key == "epochs":  # what else would decide how long it goes on
            data["schedule"] |= {"steps": None, "steps_per_epoch": None}
    try:
        changed = Workload.from_data(data)
        lay_out(changed)
    except Misfit as misfit:
        raise _unfit(workload, values, targets, misfit) from None
    return Point(values, changed, _seed(values))


def _seed(values: Mapping[str, Value]) -> int | None:
    seed = values.get(SEED)
    if seed is None:
        return None
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise SpecError(f"the seed {seed!r} does not fit", expected="a whole number from 0", found=repr(seed))
    return seed


def _unfit(
    workload: Workload, values: Mapping[str, Value], targets: Mapping[str, Sequence[Path]], misfit: Misfit
) -> SpecError:
    """The value that is to blame, where one is, and what would have been right."""
    blamed = [key for key in values if misfit.path in targets[key]]
    what = f"{blamed[0]}={values[blamed[0]]}" if blamed else title(values)
    where = "" if blamed and blamed[0] == dotted(misfit.path) else f" at {dotted(misfit.path)}"
    return SpecError(
        f"the grid's {what} does not fit {workload.name}{where}", expected=misfit.expected, found=misfit.found
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


def _hidden(workload: Workload) -> list[Path]:
    """The widths of all dense layers but the last, which has one unit a class."""
    dense = [index for index, layer in enumerate(workload.model) if isinstance(layer, Dense)]
    return [("model", index, "units") for index in dense[:-1]]


def _dropout(workload: Workload) -> list[Path]:
    layers = enumerate(workload.model)
    return [("model", index, "rate") for index, layer in layers if isinstance(layer, (Dropout, ChannelDropout))]


def _of_optimizer(name: str) -> Callable[[Workload], list[Path]]:
    return lambda workload: [("optimizer", name)] if hasattr(workload.optimizer, name) else []


NAMES: Mapping[str, Callable[[Workload], list[Path]]] = {
    **{name: _of_optimizer(name) for name in _OPTIMIZER},
    "batch_size": lambda _: [("batches", "size")],
    "epochs": lambda _: [("schedule", "epochs")],
    "steps": lambda _: [("schedule", "steps")],
    "hidden": _hidden,
    "dropout": _dropout,
}
"""Short names, and what of a workload each sets. ``seed`` is one more, and belongs to the run."""


def _targets(workload: Workload, key: str) -> list[Path]:
    """What ``key`` sets; nothing for the seed, which is no part of a workload."""
    if key == SEED:
        return []
    if key in NAMES:
        found = NAMES[key](workload)
        if not found:
            here = [name for name, of in NAMES.items() if of(workload)]
            raise SpecError(f"{workload.name} has no {key}", expected=f"one of {', '.join([*here, SEED])}")
        return found
    paths = {dotted(path): path for path in _leaves(workload)}
    if key not in paths:
        root = re.split(r"[.\[]", key)[0]
        near = [path for path in paths if path.startswith(root)] if root != key else []
        raise UnknownName("grid key", key, near or [*NAMES, SEED], otherwise="Or the path of a value: model[1].units")
    return [paths[key]]


def _leaves(workload: Workload) -> Iterator[Path]:
    """The path of every single value of the workload that may be varied."""

    def below(place: Any, path: Path) -> Iterator[Path]:
        if isinstance(place, dict):
            for key, part in place.items():
                yield from below(part, (*path, key))
        elif isinstance(place, (list, tuple)):
            for index, part in enumerate(place):
                if isinstance(part, dict):  # a list of numbers is one thing, such as a shape
                    yield from below(part, (*path, index))
        else:
            yield path

    data = workload.to_data()
    for part in _PARTS:
        yield from (path for path in below(data[part], (part,)) if path != ("schedule", "protocol"))  # trials are fresh
