"""From options to a request: the one way, for every verb that trains."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainmark.cli.options import environment_dir, read_interpreters, read_prices, read_target

if TYPE_CHECKING:
    from trainmark.execute.parent.request import Request

_LISTS = {
    "workloads": "workloads",
    "workload": "workloads",
    "backend": "backends",
    "style": "styles",
    "device": "devices",
}
_VALUES = (
    "repeats", "epochs", "steps", "dataset", "dataset_repeats", "protocol", "published", "precision", "weights_from",
    "data_dir",
)  # fmt: skip
_SETTINGS = ("seed", "threads", "memory_fraction", "log_every", "save_weights", "timeout")


def typed() -> str:
    """This command line, as it could be typed again."""
    return shlex.join(["trainmark", *sys.argv[1:]])


def request_of(options: Mapping[str, Any]) -> Request:
    """What was asked for; what a verb has no option for stays as :class:`Request` has it.

    Raises:
        UsageError: a ``--python``, ``--until`` or ``--price`` that can't be read.
    """
    from trainmark.execute.parent.plan import Settings
    from trainmark.execute.parent.request import Request

    asked: dict[str, Any] = {field: _tuple(options[name]) for name, field in _LISTS.items() if name in options}
    asked |= {name: options[name] for name in _VALUES if name in options}
    settings = {name: options[name] for name in _SETTINGS if name in options}
    return Request(
        interpreters=read_interpreters(options.get("pythons", ())),
        until=read_target(options.get("until")),
        environment=environment_dir(),
        settings=Settings(prices=read_prices(options.get("prices", ())), command=typed(), **settings),
        **asked,
    )


def _tuple(given: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """One name, several or none."""
    return given if isinstance(given, tuple) else (given,) if given else ()
