"""The folder that images are built from: written whole, and what a person changed there is never lost unsaid."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.container import render
from trainmark.container.flavours import Flavour
from trainmark.container.origin import Origin
from trainmark.container.wheel import pack, wheel_name
from trainmark.errors import OutputError, UnwritableFolder
from trainmark.regular import write_atomically

_WRITTEN = ".written.json"


@dataclass(frozen=True)
class Written:
    """What became of the files.

    Attributes:
        written: new, or brought up to date.
        unchanged: they were so already.
        kept: changed there by somebody, and left so.
    """

    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    kept: tuple[str, ...]


def contents(chosen: Sequence[tuple[Flavour, str]], origin: Origin) -> dict[str, bytes]:
    """The files by name that flavours with their bases are built from."""
    texts = {flavour.dockerfile: render.dockerfile(flavour, origin, base) for flavour, base in chosen}
    texts |= {flavour.lock: render.lock(flavour.lock) for flavour, _ in chosen}
    texts["requirements-sbom.txt"] = render.lock("requirements-sbom.txt")
    texts[".dockerignore"] = render.ignored()
    return {wheel_name(origin): pack(origin), **{name: text.encode() for name, text in texts.items()}}


def base_there(folder: Path, flavour: Flavour) -> str | None:
    """The base that was written into the folder; None where there is none yet."""
    with contextlib.suppress(OSError):
        return render.base_of((folder / flavour.dockerfile).read_text(encoding="utf-8", errors="replace"))
    return None


def write(folder: Path, files: Mapping[str, bytes], *, keep_changed: bool, force: bool = False) -> Written:
    """Write ``files`` into ``folder``.

    Args:
        keep_changed: leave what somebody changed as it is, instead of refusing to write anything.
        force: write over it.

    Raises:
        OutputError: files were changed there, or the folder can't be written.
    """
    try:
        before = _digests(folder)
        there = {name: (folder / name).read_bytes() for name in files if (folder / name).exists()}
        same = tuple(name for name in there if there[name] == files[name])
        # The wheel is no text of anybody's: it is the code that runs, always.
        changed = tuple(
            name
            for name in there
            if name not in same and not name.endswith(".whl") and before.get(name) != _digest(there[name]) and not force
        )
        if changed and not keep_changed:
            raise OutputError(
                f"{', '.join(changed)} in {folder} would be written over",
                expected="files as trainmark left them",
                found="changes of somebody's",
                fix="Give another folder with --out, or --force to lose the changes.",
            )
        fresh = tuple(name for name in files if name not in same and name not in changed)
        folder.mkdir(parents=True, exist_ok=True)
        for name in fresh:
            write_atomically(folder / name, files[name])
        known = before | {name: _digest(files[name]) for name in (*fresh, *same)}
        if known != before:
            write_atomically(folder / _WRITTEN, json.dumps(known, indent=1, sort_keys=True).encode())
    except OSError as error:
        raise UnwritableFolder(folder, error) from error
    return Written(fresh, same, changed)


def _digests(folder: Path) -> dict[str, str]:
    """What trainmark wrote there last, by name; nothing where that can't be known, which counts as changed."""
    with contextlib.suppress(OSError, ValueError):
        known = json.loads((folder / _WRITTEN).read_text(encoding="utf-8"))
        if isinstance(known, dict):
            return known
    return {}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
