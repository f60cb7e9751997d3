"""The observer of a measured command, loaded into the user's own interpreter.

``site/sitecustomize.py`` loads this package by its path under the name ``trainmark_inject``, so
that it works in interpreters without trainmark. It needs only the standard library of Python 3.8 or
newer, and imports nothing else of trainmark; it reports through the hook (``hook.py``).

- ``overlay``, ``redirect`` and ``savers`` keep what the script writes outside of its copy;
- ``watch`` waits until the command imports a framework, and then installs that framework's file
  here;
- ``observer`` counts steps, epochs and evaluations, and pauses and ends the training;
- ``logged`` keeps the values of a figure that the user names;
- ``torch`` (and one file for each other framework) report to the observer.
"""

from __future__ import annotations

import os

from . import redirect, savers
from .observer import FOLDER, Observer
from .overlay import ORIGINAL, Overlay
from .processes import PROCESS
from .watch import watch_frameworks

METRIC = "TRAINMARK_METRIC"
"""Environment variable: the name of a figure whose logged values are kept."""


def start() -> None:
    """Start to observe this process; the first process of the command that trains is reported.

    In a copy of the user's folder, also keep what it writes elsewhere.
    """
    if ORIGINAL in os.environ:
        overlay = Overlay(os.environ)
        redirect.install(overlay)
        savers.install(overlay)
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    # This file shows trainmark that the observer was started.
    with open(os.path.join(folder, "attached"), "a"):
        pass
    if not os.environ.get(PROCESS):
        os.environ[PROCESS] = str(os.getpid())
    observer = Observer(folder)
    metric = os.environ.get(METRIC)
    if metric:
        from . import logged  # what it imports takes milliseconds in every process

        logged.install(metric, observer)
    watch_frameworks(observer)
