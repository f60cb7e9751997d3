"""What is written next to every result: machine, versions and commit. No framework is imported."""

from __future__ import annotations

import datetime
import platform
import subprocess
from importlib import metadata
from typing import Any

from gpu.wheels import ROOT

VERSIONS = ("torch", "jax", "jaxlib", "keras", "tensorflow", "numpy")
"""Distributions whose versions matter."""


def context(device: str, *, quick: bool, commit: str | None) -> dict[str, Any]:
    """Describe this machine and this checkout.

    Args:
        device: the device to be measured.
        quick: whether tiny sizes are measured.
        commit: the commit, used if git can't tell it.
    """
    from trainmark.measure import machine

    here = machine.describe()
    return {
        "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
        "device": device,
        "device_name": _device_name(device, here.gpus, here.cpu),
        "cpu": here.cpu,
        "cores": here.usable_cores,
        "driver": here.gpu_driver,
        "cuda": here.cuda,
        "python": platform.python_version(),
        "versions": _versions(),
        "commit": revision() or commit or "unknown",
        "quick": quick,
    }


def revision() -> str | None:
    """Return the commit of this checkout, with a ``+`` if files differ from it; None without
    git."""
    git = ["git", "-C", str(ROOT)]
    try:
        commit = subprocess.run(
            [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
        ).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--", "src", "bench"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit[:8] + ("+" if changed else "")


def _device_name(device: str, gpus: list[str], cpu: str | None) -> str | None:
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return cpu
    number = int(index or 0)
    return gpus[number] if number < len(gpus) else None


def _versions() -> dict[str, str]:
    found = {}
    for name in VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
