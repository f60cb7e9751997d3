"""Turn the options of ``trainmark run`` into a request, for the command line and for Python."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from trainmark.backends.base import ResourceOptions
from trainmark.data.cache import environment_dir
from trainmark.errors import UnknownName, UsageError
from trainmark.execute.parent.plan import Settings
from trainmark.execute.parent.probe import Interpreter
from trainmark.execute.parent.request import RunRequest
from trainmark.record.named_metric import WantedMetric
from trainmark.workload.schedule import Quantity, Target
from trainmark.workload.size import Size

_LONGEST_METRIC = 100
"""Maximum length of the name of a metric, in characters."""
_LONGEST_LABEL = 200
"""Maximum length of a label, in characters."""


class RunOptions(ResourceOptions, total=False):
    """Options of ``trainmark run``, except those for its output; see ``trainmark run --help``.

    Attributes:
        threads: CPU threads of the framework; if not given, the framework's choice.
        memory_fraction: largest fraction of the device's memory to use, 0 to 1.
        backend: names, as a list or separated by commas; if not given, the best installed backend.
        style: ``idiomatic``, ``compiled`` or ``fast``, as a list or separated by commas; if not
            given, ``idiomatic`` and ``fast``.
        device: such as ``cpu`` or ``cuda:0``, as a list or separated by commas; if not given, all
            that the backend sees.
        pythons: other interpreters, such as ``old=/opt/old/bin/python``, for ``NAME@LABEL`` in
            ``backend``.
        repeats: full training runs per side.
        epochs: length of each run in epochs; overrides the workload.
        steps: length of each run in steps, instead of epochs.
        until: stop after the first epoch that reaches this target, such as ``test_accuracy>=0.98``.
        seed: seed of the first round.
        dataset: another dataset of the same shape, such as ``synthetic-digits``.
        dataset_repeats: passes over the dataset per epoch.
        precision: ``fp32``, ``tf32``, ``bf16``, ``fp16`` or ``fp64``.
        size: train a smaller network of the same kind, such as ``width=64,depth=2``; also
            ``batch``, ``length`` and ``crop``.
        protocol: ``fresh`` starts each repeat from new weights, ``continued`` from the previous
            repeat's.
        published: run exactly the published protocol.
        weights_from: path of a record; start from its weights.
        save_weights: save each run's weights next to its record.
        log_every: print step, loss and samples/s every this many steps.
        prices: prices per hour, such as ``cuda:0=2.49``.
        timeout: time limit of each process, in seconds; None is no limit.
        data_dir: folder with the datasets; takes precedence over ``TRAINMARK_DATA``, the cache and
            the mirrors.
    """

    backend: str | Iterable[str]
    style: str | Iterable[str]
    device: str | Iterable[str]
    pythons: Iterable[str]
    repeats: int | None
    epochs: int | None
    steps: int | None
    until: str | None
    seed: int
    dataset: str | None
    dataset_repeats: int | None
    precision: str
    size: str | None
    protocol: Literal["fresh", "continued"] | None
    published: bool
    weights_from: str | os.PathLike[str] | None
    save_weights: bool
    log_every: int | None
    prices: Iterable[str]
    timeout: float | None
    data_dir: str | os.PathLike[str] | None


_NAMES = {
    "workloads": "workloads",
    "workload": "workloads",
    "backend": "backends",
    "style": "styles",
    "device": "devices",
}
"""Options with several names, and their fields of :class:`RunRequest`."""
_PATHS = ("weights_from", "data_dir")
"""Options that are paths, with the names of their fields."""
_VALUES = (
    "repeats",
    "epochs",
    "steps",
    "dataset",
    "dataset_repeats",
    "protocol",
    "published",
    "precision",
)
"""Options whose fields have their names and values."""
_SETTINGS = ("seed", *ResourceOptions.__annotations__, "log_every", "save_weights", "timeout")
"""Options that are fields of :class:`Settings`."""


def require_known(options: Iterable[str]) -> None:
    """Reject options that ``trainmark run`` does not have.

    Args:
        options: names of options.

    Raises:
        UnknownName: there is no such option.
    """
    known = RunOptions.__annotations__
    for name in options:
        if name not in known:
            raise UnknownName("option", name, known)


def request_of(options: Mapping[str, Any], command: str) -> RunRequest:
    """Turn options into a request; missing options keep the defaults of :class:`RunRequest`.

    Args:
        options: options by name; others than those of ``trainmark run`` are ignored.
        command: the command line, for the records.

    Returns:
        The request.

    Raises:
        UsageError: an option can't be read or is out of bounds.
    """
    asked: dict[str, Any] = {
        field: _tuple(options[name]) for name, field in _NAMES.items() if name in options
    }
    asked |= {name: Path(options[name]) for name in _PATHS if options.get(name) is not None}
    asked |= {name: options[name] for name in _VALUES if name in options}
    settings = {name: options[name] for name in _SETTINGS if name in options}
    prices = read_prices(_tuple(options.get("prices")))
    return RunRequest(
        interpreters=tuple(map(read_interpreter, _tuple(options.get("pythons")))),
        until=read_target(options.get("until")),
        size=read_size(options.get("size")),
        environment=environment_dir(),
        settings=Settings(prices=prices, command=command, **settings),
        **asked,
    )


def _tuple(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Accept one name, several or none."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def read_labels(texts: Iterable[str]) -> dict[str, str]:
    """Parse the values of ``--label``.

    Args:
        texts: the values, each ``KEY=VALUE``.

    Returns:
        The labels by key.

    Raises:
        UsageError: a value can't be read.
    """
    labels: dict[str, str] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and key and value and text.isprintable()) or len(text) > _LONGEST_LABEL:
            raise UsageError(
                f"--label {text[:_LONGEST_LABEL]!r} can't be read",
                expected=f"KEY=VALUE of at most {_LONGEST_LABEL} printable characters, such as "
                "instance=g5.xlarge",
            )
        labels[key] = value
    return labels


def read_target(text: str | None) -> Target | None:
    """Parse the value of ``--until``.

    Args:
        text: the value, such as ``test_accuracy>=0.98``; None if the option is not given.

    Returns:
        The target; None without ``text``.

    Raises:
        UnknownName: the quantity is unknown.
        UsageError: the value can't be read.
    """
    if text is None:
        return None
    written = re.fullmatch(r"\s*(\w+)\s*(>=|<=)\s*([0-9.eE+-]+)\s*", text)
    quantities = get_args(Quantity)
    if written and written[1] not in quantities:
        raise UnknownName("quantity", written[1], quantities)
    try:
        target = Target(written[1], float(written[3])) if written else None  # type: ignore[arg-type]
    except ValueError:
        target = None
    if target is None or written is None or (written[2] == ">=") != target.is_accuracy:
        raise UsageError(
            f"--until {text!r} can't be read",
            expected="an accuracy as a fraction, such as test_accuracy>=0.98, or a loss, such as "
            "train_loss<=0.05",
            fix="Quote it: the shell interprets > and <.",
        )
    return target


def read_size(text: str | None) -> Size | None:
    """Parse the value of ``--size``.

    Args:
        text: the value, such as ``width=64,depth=2``; None if the option is not given.

    Returns:
        The size; None without ``text``.

    Raises:
        UnknownName: there is no such key.
        UsageError: the value can't be read.
    """
    if text is None:
        return None
    known = [field.name for field in dataclasses.fields(Size)]
    found: dict[str, int] = {}
    for part in text.split(","):
        written = re.fullmatch(r"\s*(\w+)\s*=\s*([1-9][0-9]{0,8})\s*", part)
        if written is None or written[1] in found:
            raise UsageError(
                f"--size {text!r} can't be read",
                expected="whole numbers above 0, such as width=64,depth=2",
                found=part,
            )
        if written[1] not in known:
            raise UnknownName("key of --size", written[1], known)
        found[written[1]] = int(written[2])
    return Size(**found)


def read_prices(texts: Iterable[str]) -> dict[str, float]:
    """Parse the values of ``--price``.

    Args:
        texts: the values, each ``DEVICE=PER_HOUR``.

    Returns:
        The price per hour of each device.

    Raises:
        UsageError: a value can't be read.
    """
    prices: dict[str, float] = {}
    for text in texts:
        device, _, price = text.partition("=")
        try:
            prices[device.strip()] = float(price)
        except ValueError:
            prices[device.strip()] = math.nan
        if not device.strip() or not 0 <= prices[device.strip()] < math.inf:
            raise UsageError(
                f"--price {text!r} can't be read",
                expected="DEVICE=PER_HOUR with a price of 0 or more, such as cuda:0=2.49 or "
                "cpu=0.10",
                found=repr(text),
            )
    return prices


def read_metric(name: str | None, *, lower: bool, higher: bool) -> WantedMetric | None:
    """Read ``--metric`` with its direction.

    Args:
        name: the value of ``--metric``; None if the option is not given.
        lower: whether ``--lower-is-better`` is given.
        higher: whether ``--higher-is-better`` is given.

    Returns:
        The figure; None without ``name``.

    Raises:
        UsageError: one of the options lacks the other, both directions are given, or the name has
            no letter or is too long.
    """
    directions = "--lower-is-better or --higher-is-better"
    if name is None and (lower or higher):
        raise UsageError(
            f"{'--lower' if lower else '--higher'}-is-better says nothing without --metric",
            expected="the name of a figure, such as --metric val_loss",
            found="no --metric",
        )
    if name is None:
        return None
    if lower == higher:
        raise UsageError(
            f"--metric {name[:_LONGEST_METRIC]!r} needs one direction",
            expected=directions,
            found="both" if lower else "neither",
            fix="A loss is better if it is lower, an accuracy or a reward if it is higher.",
        )
    if len(name) > _LONGEST_METRIC or not name.isprintable() or not re.search(r"[^\W\d]", name):
        raise UsageError(
            f"--metric {name[:_LONGEST_METRIC]!r} can't be read",
            expected=f"a name of at most {_LONGEST_METRIC} characters with a letter, such as "
            "val_loss or 'test accuracy'",
        )
    return WantedMetric(name.strip(), "lower" if lower else "higher")


def working_folder() -> Path:
    """Find the working folder.

    Returns:
        Its path.

    Raises:
        UsageError: it no longer exists.
    """
    try:
        return Path.cwd()
    except OSError as error:
        found = error.strerror or str(error)
        raise UsageError(
            "the working folder no longer exists", found=found, fix="cd to another folder."
        ) from error


def read_interpreter(text: str) -> Interpreter:
    """Parse a value of ``--python``.

    Args:
        text: ``LABEL=PATH``.

    Returns:
        The interpreter.

    Raises:
        UsageError: the value can't be read.
    """
    label, separator, path = text.partition("=")
    if not separator or not label or not path or "@" in label or label == "default":
        raise UsageError(
            f"--python {text!r} can't be read",
            expected="LABEL=/path/to/bin/python",
            found=repr(text),
        )
    # This is not resolved: a virtual environment's python is a link, and following it would leave
    # the environment. Path.expanduser raises if there is no such user.
    place = Path(os.path.expanduser(path))  # noqa: PTH111
    return Interpreter(label, place if place.is_absolute() else working_folder() / place)
