"""Started by every Python interpreter of a measured command.

The command ``trainmark measure`` puts this folder on its path.

It starts the observer, takes this folder off the path, and runs the ``sitecustomize`` that it
hides, if there is one.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location


def _start_observer(folder: str) -> None:
    path = os.path.join(folder, "__init__.py")  # pathlib takes 5 ms to import
    _run(
        "trainmark_inject",
        spec_from_file_location("trainmark_inject", path, submodule_search_locations=[folder]),
    )
    sys.modules["trainmark_inject"].start()


def _run(name: str, spec: ModuleSpec | None) -> None:
    if spec is not None and spec.loader is not None:
        module = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(module)


_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
try:
    _start_observer(os.path.dirname(_here))
# The command must run in any case; the record then has no steps.
except Exception as error:  # noqa: BLE001
    # A confined command must not run without protection, since it could write to the user's files.
    if "TRAINMARK_ORIGINAL" in os.environ:
        os.write(
            2,
            f"trainmark can't protect your files in Python {sys.version.split()[0]}: "
            f"{error}\n".encode(),
        )
        os._exit(1)
_run("sitecustomize", PathFinder.find_spec("sitecustomize", sys.path))
