"""Where a confined command may write, and the variables that lead it there."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Mapping
from pathlib import Path

from trainmark.backends.inductor import CACHE_VARIABLE
from trainmark.execute.protocol.copies import Place
from trainmark.inject.overlay import ABOVE, COPIED_AT, COPY, ELSEWHERE, ORIGINAL, WRITABLE

_CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "/tmp/torchinductor_{user}",
    "TRITON_CACHE_DIR": "~/.triton/cache",
    "TORCH_EXTENSIONS_DIR": "~/.cache/torch_extensions",
    "CUDA_CACHE_PATH": "~/.nv/ComputeCache",
    "JAX_COMPILATION_CACHE_DIR": None,
    "NUMBA_CACHE_DIR": None,
}
"""Environment variables of compiled code that is loaded right after it is written, and the
library's own default; None if it has none, or one next to the user's source."""
_ALWAYS_SET = ("NUMBA_CACHE_DIR",)
"""Variables without which the library writes next to the user's source."""
_MPS = Path("/tmp/nvidia-mps")
"""Pipes of NVIDIA's service that shares a GPU, which are written to."""
OUTSIDE = "outside"
"""Folder, in that of the run, of what is written outside of the copy."""


def confined_environment(
    environment: Mapping[str, str], scratch: Path, original: str, place: Place
) -> dict[str, str]:
    """Return the environment of a command that runs in a copy of the user's folder.

    Args:
        environment: that of the unconfined command.
        scratch: folder of this run, which is removed at its end.
        original: the user's folder.
        place: that of its copy.
    """
    temporary = scratch / "tmp"
    temporary.mkdir(exist_ok=True)
    found = {
        **environment,
        "TMPDIR": str(temporary),
        "PWD": str(place.copy),
        ORIGINAL: original,
        COPY: str(place.copy),
        ABOVE: str(place.root),
        COPIED_AT: str(time.time()),
        ELSEWHERE: str(scratch / OUTSIDE),
    }
    shared = environment.get(CACHE_VARIABLE)
    for variable, default in _CACHES.items():
        if found.get(variable):
            continue
        theirs = default and Path(default.format(user=_user())).expanduser()
        if theirs and theirs.is_dir():
            found[variable] = str(theirs)
        elif shared and (default or variable in _ALWAYS_SET):
            found[variable] = str(Path(shared) / variable.lower())
    found[WRITABLE] = os.pathsep.join(writable_folders(found, scratch, original))
    return found


def writable_folders(environment: Mapping[str, str], scratch: Path, original: str) -> list[str]:
    """Return the only folders below which the command may write.

    A cache around the user's folder is left out.
    """
    variables = (CACHE_VARIABLE, *_CACHES)
    caches = [Path(environment[name]) for name in variables if environment.get(name)]
    inside = Path(original).resolve()
    safe = [each for each in [*caches, _MPS] if not inside.is_relative_to(each.resolve())]
    return [str(each) for each in [scratch, *safe]]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        return ""
