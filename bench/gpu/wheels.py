"""The modules that trainmark needs, on a machine without a network.

They come from wheels. If these are missing, an error names the command that downloads them.
"""

from __future__ import annotations

import platform
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""
NEEDED = {
    "numpy": "numpy",
    "msgspec": "msgspec",
    "click": "click",
    "rich": "rich",
    "psutil": "psutil",
    "pynvml": "nvidia-ml-py",
    "platformdirs": "platformdirs",
}
"""Each module with its distribution on PyPI, except requests, which only downloads need."""


def packages(wheels: Path | None, scratch: Path) -> list[str]:
    """Unpack the wheels and return the folders to put on the path."""
    if wheels is None:
        return []
    unpacked = scratch / "packages"
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(unpacked)
    return [str(unpacked)]


def require_modules() -> None:
    """Exit with the command that downloads the missing modules, if there are any."""
    missing = [name for module, name in NEEDED.items() if find_spec(module) is None]
    if not missing:
        return
    if find_spec("pytest") is None:
        missing.append("pytest")
    version = ".".join(platform.python_version_tuple()[:2])
    sys.exit(
        f"bench/gpu: {sys.executable} lacks {', '.join(missing)}.\n"
        "On a machine with a network:\n"
        f"  pip download --only-binary :all: --python-version {version} --platform "
        f"manylinux2014_{platform.machine()} "
        f"-d wheels {' '.join(missing)}\n"
        "Copy the folder here, then add:\n"
        "  --wheels wheels"
    )
