"""Installs what observes a framework, once the command has imported it."""

from __future__ import annotations

import functools
import importlib
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any

from . import changes
from .observer import Observer

FRAMEWORKS = ("torch", "tensorflow", "keras", "jax")
"""Modules that are watched for. ``NAME.py`` in this package has ``install(module, observer)`` for
it."""


class Watch:
    """A finder that installs the file of each framework as soon as it is imported.

    It finds nothing itself.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._awaited = set(FRAMEWORKS)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return what other finders find for a framework; else None.

        Its file is installed after its import.
        """
        if name not in self._awaited:
            return None
        self._awaited.discard(name)
        spec = find_spec(name)
        self._awaited.add(name)  # this may only be a question whether there is such a module
        if spec is not None and spec.loader is not None:
            self._install_after(spec.loader, name)
        return spec

    def _install_after(self, loader: Any, name: str) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            del loader.exec_module  # the loader gets its own method back
            self._awaited.discard(name)
            execute(module)
            self._observer.attempt(name, functools.partial(self._install, name, module))

        loader.exec_module = exec_module

    def _install(self, name: str, module: Any) -> None:
        importlib.import_module("." + name, __package__).install(module, self._observer)
        changes.install(name, self._observer)
