"""The running trainmark as a wheel, so that an image holds the code that wrote it, whether installed or a clone.

The format is that of the binary distribution format of the Python Packaging User Guide: a zip file whose last entry
lists every other one with its SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import io
import zipfile

from trainmark.container.origin import Origin

_FROM_INSTALLATION = ("METADATA", "entry_points.txt", "licenses/LICENSE")


def wheel_name(origin: Origin) -> str:
    """The name of its file."""
    return f"trainmark-{origin.version}-py3-none-any.whl"


def pack(origin: Origin) -> bytes:
    """The wheel; the same code gives the same bytes."""
    info = f"trainmark-{origin.version}.dist-info"
    entries = {
        f"trainmark/{path.relative_to(origin.package).as_posix()}": path.read_bytes()
        for path in sorted(origin.package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    installation = importlib.metadata.distribution("trainmark")
    for name in _FROM_INSTALLATION:
        text = installation.read_text(name) or (installation.read_text("PKG-INFO") if name == "METADATA" else None)
        if text:
            entries[f"{info}/{name}"] = text.encode()
    entries[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: trainmark {origin.version}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    ).encode()
    listed = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in entries.items()]
    entries[f"{info}/RECORD"] = "\n".join([*listed, f"{info}/RECORD,,", ""]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            entry = zipfile.ZipInfo(name)  # dated 1980, as every zip file that is to be the same again
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return packed.getvalue()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
