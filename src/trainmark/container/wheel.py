"""The running trainmark as a wheel, so that an image holds the code that wrote it, whether installed or a clone.

The format is that of the binary distribution format of the Python Packaging User Guide: a zip file whose last entry
lists every other one with its SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import io
import re
import zipfile

from trainmark.container.origin import Origin
from trainmark.errors import UsageError

_FROM_INSTALLATION = ("METADATA", "entry_points.txt", "licenses/LICENSE")
_VERSION = re.compile(r"^Version: .*$", re.MULTILINE)


def wheel_name(origin: Origin) -> str:
    """The name of its file."""
    return f"trainmark-{origin.version}-py3-none-any.whl"


def pack(origin: Origin) -> bytes:
    """The wheel; the same code gives the same bytes.

    Raises:
        UsageError: trainmark is not installed.
    """
    info = f"trainmark-{origin.version}.dist-info"
    entries = {
        f"trainmark/{path.relative_to(origin.package).as_posix()}": path.read_bytes()
        for path in sorted(origin.package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    # A clone asks git for its version, an installation its build; what is written down here may be older than both.
    entries["trainmark/_version.py"] = f'VERSION = "{origin.version}"\n'.encode()
    for name, text in _installed().items():
        entries[f"{info}/{name}"] = _VERSION.sub(f"Version: {origin.version}", text, count=1).encode()
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


def _installed() -> dict[str, str]:
    """What the installation says of trainmark, by the name of its file: commands, requirements, licence."""
    try:
        installation = importlib.metadata.distribution("trainmark")
    except importlib.metadata.PackageNotFoundError as error:
        raise UsageError(
            "an image can't be made of source alone, which does not say what it needs",
            expected="trainmark installed",
            found="no installation",
            fix="pip install -e . in the clone.",
        ) from error
    texts = {name: installation.read_text(name) for name in _FROM_INSTALLATION}
    texts["METADATA"] = texts["METADATA"] or installation.read_text("PKG-INFO")
    return {name: text for name, text in texts.items() if text}


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
