"""An archive as a mirror serves it."""

from __future__ import annotations

import io
import tarfile


def tar_gz(contents: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as opened:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return archive.getvalue()
