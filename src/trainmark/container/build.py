"""An image, from the folder to what can be said of it."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from trainmark.container.engine import Engine, Order
from trainmark.container.process import follow
from trainmark.container.render import is_pinned
from trainmark.errors import BuildFailed, UnwritableFolder

SBOM_IN_IMAGE = "/opt/trainmark/sbom.cdx.json"
_TAIL_LINES = 25
_STEP = re.compile(r"STEP \d+/\d+: .*|\[\d/\d\] STEP \d+/\d+: .*|#\d+ \[.*")  # podman's and buildah's, and docker's


@dataclass(frozen=True)
class Built:
    """What was built.

    Attributes:
        image: its name.
        id: what the engine calls it.
        engine: who built it.
        base: what it stands on.
        bytes: of its files, uncompressed.
        seconds: from the engine's start to its end.
        sbom: file with the Python packages in it; None for a part of an image.
        packages: how many those are.
        log: file with all that the engine said.
    """

    image: str
    id: str
    engine: str
    base: str
    bytes: int
    seconds: float
    sbom: Path | None
    packages: int | None
    log: Path


def pinned(order: Order, engine: Engine) -> Order:
    """``order`` on a base that is named by its digest, as far as ``engine`` can tell that."""
    base = order.arguments["BASE"]
    if is_pinned(base):
        return order
    return replace(order, arguments={**order.arguments, "BASE": engine.digest(base) or base})


def build(order: Order, engine: Engine, told: Callable[[str], None]) -> Built:
    """Build ``order``.

    Args:
        told: gets each step's first line as it begins.

    Raises:
        BuildFailed: with the end of what the engine said.
    """
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    part = f"{order.dockerfile}{'.' + order.target if order.target else ''}"
    log = order.folder / f"{part}.log"

    def hear(line: str) -> None:
        tail.append(line)
        writing.write(f"{line}\n")
        if _STEP.match(line):
            told(line)

    words = engine.build_words(order)
    begun = time.monotonic()
    with _writing_into(order.folder), log.open("w", buffering=1, encoding="utf-8") as writing:
        code = follow(words, hear)
    seconds = time.monotonic() - begun
    if code != 0:
        raise BuildFailed(
            f"{order.tag} was not built",
            found=f"exit code {code} of {engine.name}",
            fix=f"All that it said is in {log}, which ends\n  " + "\n  ".join([*tail, f"of {shlex.join(words)}"]),
        )
    image, size = engine.size(order.tag)
    sbom, packages = (None, None) if order.target is not None else _sbom(order, engine)
    base = order.arguments["BASE"]
    return Built(order.tag, image, engine.name, base, size, seconds, sbom, packages, log)


def _sbom(order: Order, engine: Engine) -> tuple[Path, int]:
    text = engine.read(order.tag, SBOM_IN_IMAGE)
    path = order.folder / f"{order.dockerfile}.sbom.cdx.json"
    with _writing_into(order.folder):
        path.write_text(text, encoding="utf-8")
    return path, len(json.loads(text)["components"])


@contextlib.contextmanager
def _writing_into(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnwritableFolder(folder, error) from error
