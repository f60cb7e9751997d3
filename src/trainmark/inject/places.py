"""Where in the user's code something happens."""

from __future__ import annotations

import functools
import linecache
import os
import sys
from types import FrameType

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_NOT_THE_USERS = (
    _PACKAGE,
    os.path.dirname(os.__file__),
    "<frozen",
    os.path.join(os.path.dirname(_PACKAGE), "hook.py"),
)
NOTEBOOK = "TRAINMARK_NOTEBOOK"
"""Environment variable: the notebook that is executed, if it is one."""
_KERNEL = os.sep + "ipykernel_"
"""In the name that Jupyter gives to a cell, as if it were a file."""
_MOST_PLACES = 4
"""Most places at which the same happens."""
_NOT_IN = ("-packages", "__autograph_generated", "torchinductor")


def _working_folder() -> str:
    """Return the working folder, with the separator after it; nothing if it has been removed."""
    try:
        return os.path.join(os.getcwd(), "")
    except OSError:
        return ""


_AT_START = _working_folder()
"""The folder that the script started in, captured early: the script may change directory."""


class Places(dict):  # type: ignore[type-arg]
    """Where things are made or happen for the first time, each ``file:line``.

    Names are loader, optimizer and model, which are made there; loading, forward, backward,
    optimizer_step, evaluation, no_grad, save, fit and step. Further lines of the first steps are
    forward_2, backward_3 and so on. In JAX there are also compile, eager (gradients outside of
    jitted functions) and outside (the function whose weights are changed outside of it).
    """

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[int, str] = {}

    def keep(self, what: str, frame: FrameType | None) -> None:
        """Keep where something happens for the first time."""
        if what not in self:
            self[what] = users_place(frame) or ""

    def keep_further(self, what: str, place: str) -> None:
        """Keep a place, also if something happens at another one, too."""
        names = (what, *(f"{what}_{number}" for number in range(2, _MOST_PLACES + 1)))
        for name in names:
            if self.setdefault(name, place) == place:
                return

    def made(self, thing: object, frame: FrameType | None) -> None:
        """Keep where a thing was made, for :meth:`made_at`."""
        found = users_place(frame)
        if found:
            self._made[id(thing)] = found

    def made_at(self, what: str, thing: object) -> None:
        """Keep where ``thing``, the model or the optimiser of this training, was made."""
        found = self.place_of(thing)
        if found:
            self.setdefault(what, found)

    def place_of(self, thing: object) -> str | None:
        """Return where a thing was made, if that is known."""
        return self._made.get(id(thing))


def users_place(frame: FrameType | None) -> str | None:
    """Return ``file:line`` of the innermost frame that is the user's."""
    while frame is not None and not is_users_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame and place_of(frame.f_code.co_filename, line_of(frame))


def is_cell(name: str) -> bool:
    """Whether a file is a cell of a notebook."""
    return _KERNEL in name


def _number_of_cell(name: str) -> int:
    """Return the number that a notebook shows next to a cell; 0 if it is unknown."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if not shell:
        return 0
    text = "".join(linecache.getlines(name)).strip()
    inputs: list[str] = shell.user_ns.get("In", [])
    return max((number for number, cell in enumerate(inputs) if cell.strip() == text), default=0)


@functools.lru_cache(maxsize=None)  # noqa: UP033  (Python 3.8)
def is_users_file(name: str) -> bool:
    """Whether a file is neither of a package nor of the standard library."""
    if any(each in name for each in _NOT_IN) or name.startswith(_NOT_THE_USERS):
        return False
    return not _is_generated(name)


def _is_generated(name: str) -> bool:
    """Whether a library has written a file for itself, such as one of compiled code.

    These are among temporary files, in a folder without anything of the script.
    """
    temporary = _as_prefix(os.environ.get("TMPDIR") or "/tmp")
    if not name.startswith(temporary) or is_cell(name):
        return False
    main = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    of_script = {_AT_START, _as_prefix(os.path.dirname(main))}
    of_path = {_as_prefix(each) for each in sys.path} - {temporary}
    return not any(name.startswith(each) for each in (of_script | of_path) - {""})


def _as_prefix(folder: str) -> str:
    """Return the beginning of all paths in a folder."""
    return os.path.join(os.path.abspath(folder), "") if folder else ""


def line_of(frame: FrameType) -> int:
    """Return the line that a frame executes.

    Python gives some instructions no line, such as those between the parts of
    ``0 <= r < 28 and x``; these belong to the line before them.
    """
    if frame.f_lineno is not None:
        return frame.f_lineno
    nearest = frame.f_code.co_firstlineno
    for start, _, line in frame.f_code.co_lines():
        if start > frame.f_lasti:
            break
        nearest = line or nearest
    return nearest


def place_of(name: str, line: int) -> str:
    """Return ``file:line``, from the working folder if the file is in it.

    A cell of a notebook is ``train.ipynb, cell 3, line 7``.
    """
    if is_cell(name):
        notebook = os.environ.get(NOTEBOOK) or "notebook"
        return f"{notebook}, cell {_number_of_cell(name) or '?'}, line {line}"
    return f"{name[len(_AT_START) :] if name.startswith(_AT_START) else name}:{line}"
