"""Values of a figure that the script logs to a library, such as TensorBoard.

The functions of a library are observed only after the script has imported it, and only if the user
has named a figure (``trainmark measure --metric``). Numbers are sent with the next report. Tensors
are kept as copies on their device, and are read when the observer reads its losses, so that nothing
waits for a device meanwhile.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Generator, Mapping
from typing import Any, Callable  # noqa: UP035  (Python 3.8 has no aliases of the other one)

from .imports import after_import
from .observer import Observer
from .patch import inside

_MOST_VALUES = 2_000
"""Number of values, from the first one on, of which every one is kept."""
_THEN_EVERY = 100
"""After these values, one in this many is kept."""
_MOST_NAMES = 20
"""Most other names that are reported."""
_VALUES_OF_LINE = 80
"""Most values in one line of a report; more are sent in several lines."""

Read = Callable[["Mapping[str, Any]"], "Mapping[str, Any]"]
"""Returns the figures that a call logs, given its arguments."""


def install(name: str, observer: Observer) -> None:
    """Observe what logs scalars, in each library as soon as it is imported.

    Args:
        name: the figure that is looked for.
        observer: that of this process.
    """
    logged = Logged(name, observer)
    observer.also_report = logged.messages
    for module, where in _LOGGERS.items():
        after_import(module, functools.partial(_observe, logged, where, observer))


class Logged:
    """Keeps the values of a figure, and the names of others.

    Args:
        name: the figure, in any mixture of capital and small letters.
        observer: knows the number of steps.
    """

    def __init__(self, name: str, observer: Observer) -> None:
        self._name = name.casefold()
        self._observer = observer
        self._series: dict[str, _Series] = {}
        self._others: dict[str, None] = {}
        self._others_sent = 0

    def keep(self, source: str, figures: Mapping[str, Any]) -> None:
        """Keep what was logged.

        Libraries pass figures on to each other, so each one is that of the first library alone.
        """
        for tag, value in figures.items():
            if not isinstance(tag, str):
                continue
            if tag.casefold() != self._name:
                if len(self._others) < _MOST_NAMES:
                    self._others[tag] = None
                continue
            series = self._series.get(tag)
            if series is not None and series.source != source:
                continue
            kept = _kept(value)
            if kept is None:
                continue
            if series is None:
                series = self._series[tag] = _Series(source)
            series.add(self._observer.steps, kept)

    def messages(self, reads: bool) -> list[dict[str, Any]]:
        """Return what is reported since the last call.

        Args:
            reads: whether tensors may be read now, which may wait for a device.
        """
        others = list(self._others)
        found: list[dict[str, Any]] = []
        for tag, series in self._series.items():
            for values in series.read(reads):
                found.append(
                    {
                        "event": "logged",
                        "tag": tag,
                        "count": series.count,
                        "values": values,
                        "extremes": series.extremes(),
                        "others": others,
                    }
                )
        if not found and len(others) > self._others_sent:
            found.append({"event": "logged", "tag": "", "others": others})
        self._others_sent = len(others)
        return found


class _Series:
    """The values of one name.

    Args:
        source: the library that they are logged to.

    Attributes:
        count: how many there were.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.count = 0
        self._unread: list[tuple[int, Any]] = []
        self._last: tuple[int, Any] | None = None
        self._lowest: tuple[int, float] | None = None
        self._highest: tuple[int, float] | None = None

    def add(self, step: int, kept: Any) -> None:
        """Add a number, or a tensor to be read later."""
        if isinstance(kept, float):
            self._compare(step, kept)
        if self.count < _MOST_VALUES or self.count % _THEN_EVERY == 0:
            self._unread.append((step, kept))
            self._last = None
        else:
            self._last = (step, kept)
        self.count += 1

    def _compare(self, step: int, value: float) -> None:
        if self._lowest is None or value < self._lowest[1]:
            self._lowest = step, value
        if self._highest is None or value > self._highest[1]:
            self._highest = step, value

    def extremes(self) -> list[list[Any]]:
        """Return the lowest and the highest value with their steps."""
        return [
            [step, _plain(value)] for step, value in filter(None, (self._lowest, self._highest))
        ]

    def read(self, reads: bool) -> Generator[list[list[Any]], None, None]:
        """Yield the values since the last call, in parts that fit into a line.

        Args:
            reads: whether tensors may be read. Otherwise, the first one and all after it are left,
                since values are sent in their order.
        """
        waiting = self._unread
        if self._last is not None:  # the last value counts most
            waiting.append(self._last)
            self._last = None
        values: list[list[Any]] = []
        taken = 0
        for step, kept in waiting:
            if not (reads or isinstance(kept, float)):
                break
            taken += 1
            number = _number(kept)
            if number is not None:
                self._compare(step, number)
                values.append([step, _plain(number)])
        self._unread = waiting[taken:]
        while values:
            yield values[:_VALUES_OF_LINE]
            values = values[_VALUES_OF_LINE:]


def _kept(value: Any) -> Any:
    """Return a number, or a tensor of one element to be read later; None for anything else.

    Nothing else is kept alive, such as an image or a large tensor.
    """
    try:
        if hasattr(value, "detach"):
            # The script may change its tensor in place.
            return value.detach().clone() if value.numel() == 1 else None
        if hasattr(value, "block_until_ready"):  # an array of JAX, which never changes
            return value if value.size == 1 else None
    # It may be anything that has such a name.
    except Exception:  # noqa: BLE001
        return None
    return _number(value)


def _number(kept: Any) -> float | None:
    """Return the number in a value; None for a text or for several numbers."""
    try:
        # Only what has one element has this shape, and its elements are not copied before.
        return float(kept.reshape(()).tolist() if hasattr(kept, "reshape") else kept)
    # It may be anything, such as an image.
    except Exception:  # noqa: BLE001
        return None


def _plain(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)  # JSON has no such numbers


def _one(tag: str, value: str) -> Read:
    """Return what reads a figure from the arguments of these names."""

    def read(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return {arguments[tag]: arguments[value]}

    return read


def _all(name: str) -> Read:
    """Return what reads the figures in a mapping, the argument of this name."""

    def read(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        figures = arguments[name]
        return figures if isinstance(figures, Mapping) else {}

    return read


_TENSORBOARD = {"SummaryWriter.add_scalar": _one("tag", "scalar_value")}
_LIGHTNING = {"_LoggerConnector.log_metrics": _all("metrics")}
_LOGGERS: dict[str, dict[str, Read]] = {
    "torch.utils.tensorboard.writer": _TENSORBOARD,
    "tensorboardX.writer": _TENSORBOARD,
    "wandb.sdk.wandb_run": {"Run.log": _all("data")},
    "mlflow.tracking.fluent": {
        "log_metric": _one("key", "value"),
        "log_metrics": _all("metrics"),
    },
    # What a module logs is averaged over batches before it arrives here.
    "lightning.pytorch.trainer.connectors.logger_connector.logger_connector": _LIGHTNING,
    "pytorch_lightning.trainer.connectors.logger_connector.logger_connector": _LIGHTNING,
    "transformers.trainer": {"Trainer.log": _all("logs")},
    "keras.src.callbacks.callback_list": {"CallbackList.on_epoch_end": _all("logs")},
}
"""The functions of each module that log scalars, and what reads them."""


def _observe(logged: Logged, where: dict[str, Read], observer: Observer, module: Any) -> None:
    for name, read in where.items():
        patch = functools.partial(_observe_one, logged, module, name, read, observer)
        observer.attempt(f"{module.__name__}.{name}", patch)


def _observe_one(logged: Logged, module: Any, name: str, read: Read, observer: Observer) -> None:
    source = module.__name__

    def logs(arguments: dict[str, Any]) -> Generator[None, Any, None]:
        try:
            logged.keep(source, read(arguments))
        # The script logs what it likes, and its steps are still observed.
        except Exception as error:  # noqa: BLE001
            failure = f"not a value by {source}.{name}: {type(error).__name__}: {error}"[:200]
            if failure not in observer.injected:
                observer.injected.append(failure)
        yield

    *path, last = name.split(".")
    owner = functools.reduce(getattr, path, module)
    inside(owner, last, logs, observer)
