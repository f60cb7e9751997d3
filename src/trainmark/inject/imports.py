"""Calls a function as soon as the script has imported a module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any


class AfterImport:
    """A finder that calls the actions of each module as soon as it is imported.

    It finds nothing itself.
    """

    def __init__(self) -> None:
        self._actions: dict[str, list[Callable[[Any], Any]]] = {}

    def add(self, name: str, action: Callable[[Any], Any]) -> None:
        """Call ``action`` after the import of ``name``, which may have happened."""
        if name in sys.modules:
            action(sys.modules[name])
        else:
            self._actions.setdefault(name, []).append(action)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return what other finders find for an awaited module; else None."""
        actions = self._actions.pop(name, None)
        if actions is None:
            return None
        spec = find_spec(name)
        self._actions[name] = actions  # this may only be a question whether there is such a module
        if spec is not None and spec.loader is not None:
            self._act_after(spec.loader, name)
        return spec

    def _act_after(self, loader: Any, name: str) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            del loader.exec_module  # the loader gets its own method back
            actions = self._actions.pop(name, [])
            execute(module)
            for action in actions:
                action(module)

        loader.exec_module = exec_module


_FINDER = AfterImport()


def after_import(name: str, action: Callable[[Any], Any]) -> None:
    """Call ``action`` with a module as soon as it is imported, or now if it was."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    _FINDER.add(name, action)
