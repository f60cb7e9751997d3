"""Changes to a training that ``trainmark explain`` tries.

Each is tried in a separate run of the user's script.

The environment variable ``TRAINMARK_CHANGES`` names those of this process, separated by commas, as
in ``bf16,workers=2``; it is empty for the unchanged script. A change proves that it took effect, or
says why it can't be applied: one that silently does nothing would be reported as not worth trying.

Needs only the standard library of Python 3.8 or newer; it is loaded in the user's process.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from ..patch import around

VARIABLE = "TRAINMARK_CHANGES"
"""Environment variable: the changes of an experiment, separated by commas."""
OLD_VALUES_AT = "old values at "
"""The proof of ``no-sync`` begins so; places follow, separated by semicolons and spaces."""


class Change:
    """One change in this process.

    Args:
        name: its name with its value, such as ``workers=2``.
        observer: reports whether it took effect.
        is_on: whether it begins now; else, :meth:`switch` turns it on.
    """

    def __init__(self, name: str, observer: Any, *, is_on: bool = True) -> None:
        self.name = name
        self.observer = observer
        self.word, _, self.value = name.partition("=")
        self.done = False
        self.is_on = is_on
        self._keeps = False
        self._switches = []  # type: list[tuple[Callable[[], object], Callable[[], object]]]

    def around(self, kind: Any, name: str, by: Callable[..., Any]) -> None:
        """Replace a function, as :func:`~trainmark.inject.patch.around` does, while this is on."""
        around(kind, name, by, lambda: self.is_on)

    def switches(self, on: Callable[[], object], off: Callable[[], object]) -> None:
        """Call ``on`` now or when this is turned on, and ``off`` when it is turned off."""
        self._switches.append((on, off))
        if self.is_on:
            on()

    def switch(self, *, is_on: bool) -> None:
        """Turn this on or off, between two steps."""
        if is_on == self.is_on:
            return
        self.is_on = is_on
        for on, off in self._switches:
            (on if is_on else off)()

    def took(self, proof: str) -> None:
        """Report that it took effect; only the first proof counts."""
        if not self.done:
            self.done = True
            self.observer.changed(self.name, proof)

    def proves(self, proof: str) -> None:
        """Report that it took effect; the latest proof counts."""
        self.done = True
        self.observer.changed(self.name, proof)

    def cannot(self, why: str) -> None:
        """Report that it can't be applied."""
        if not self.done:
            self.done = True
            self.observer.cannot(self.name, why)

    def keeps(self, why: Callable[[], str]) -> None:
        """Report that it is not applied to a part of the script; it may be to another one."""
        if not self._keeps:
            self._keeps = True
            self.observer.cannot(self.name, why())

    def nothing(self, real: Any, /, *_: Any, **__: Any) -> None:
        """Replace ``real``, and do nothing."""
        self.took(f"{real.__name__} does nothing")


def _no_change(_: Change) -> None:
    pass


def apply(observer: Any, framework: Any) -> None:
    """Apply this process's changes that a framework's module defines.

    The function of ``same-batch`` is ``same_batch``.

    An error is reported, never raised.
    """
    for name in filter(None, os.environ.get(VARIABLE, "").split(",")):
        change = Change(name, observer)
        try:
            getattr(framework, change.word.replace("-", "_"), _no_change)(change)
        except Exception as error:  # noqa: BLE001  (the user's script must go on)
            change.cannot(f"{type(error).__name__}: {error}"[:200])


def install(framework: str, observer: Any) -> None:
    """Apply the changes to a framework that was just imported.

    There are none unless this process is an experiment.
    """
    if VARIABLE not in os.environ:
        return
    if find_spec("." + framework, __package__):
        module = importlib.import_module("." + framework, __package__)
        apply(observer, module)
