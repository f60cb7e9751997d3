"""Installs what observes a framework, once the command has imported it."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from . import changes
from .imports import after_import
from .observer import Observer

FRAMEWORKS = ("torch", "tensorflow", "keras", "jax")
"""Modules that are watched for. ``NAME.py`` in this package has ``install(module, observer)`` for
it."""


def watch_frameworks(observer: Observer) -> None:
    """Install the file of each framework as soon as it is imported."""
    for name in FRAMEWORKS:
        after_import(name, functools.partial(_attempt, name, observer))


def _attempt(name: str, observer: Observer, module: Any) -> None:
    observer.attempt(name, functools.partial(_install, name, module, observer))


def _install(name: str, module: Any, observer: Observer) -> None:
    importlib.import_module("." + name, __package__).install(module, observer)
    changes.install(name, observer)
