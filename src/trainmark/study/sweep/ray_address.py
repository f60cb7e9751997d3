"""Checks that a Ray cluster answers: Ray itself would try for two minutes, then end the process."""

from __future__ import annotations

import socket
import subprocess
import sys

from trainmark.errors import UsageError

PATIENCE_SECONDS = 60.0
"""Seconds within which a cluster must answer."""
_CONNECT = (
    "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')"
)


def require_reachable(address: str, patience: float = PATIENCE_SECONDS) -> None:
    """Raise UsageError unless a cluster answers at ``address`` within ``patience`` seconds."""
    try:
        if address != "auto":  # a closed port refuses at once, but Ray would keep trying
            host, _, port = address.removeprefix("ray://").rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=patience).close()
        asking = [sys.executable, "-c", _CONNECT, address]
        asked = subprocess.run(
            asking, capture_output=True, text=True, errors="replace", timeout=patience, check=False
        )
    except subprocess.TimeoutExpired:
        raise _unreachable(address, f"no answer within {patience:g} seconds") from None
    except (OSError, OverflowError, ValueError) as error:
        raise _unreachable(address, str(error)) from error
    if asked.returncode:
        raise _unreachable(address, (asked.stderr.strip().splitlines() or ["nothing"])[-1][:300])


def _unreachable(address: str, found: str) -> UsageError:
    return UsageError(
        f"no Ray cluster answers at {address!r}",
        expected="auto, HOST:PORT or ray://HOST:PORT of a running cluster",
        found=found,
        fix="Check that it runs (ray status). Without --address, trials run on this machine.",
    )
