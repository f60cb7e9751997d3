"""Is there a Ray at an address? Asked before anything of ours depends on it, and never waited for long."""

from __future__ import annotations

import re
import socket
import subprocess
import sys

from trainmark.errors import UsageError

PATIENCE_SECONDS = 10.0
"""With a cluster that does not answer; Ray itself would wait for two minutes, and then end the process."""
_KNOCK = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')"


def knock(address: str, patience: float = PATIENCE_SECONDS) -> None:
    """Raise UsageError unless a Ray cluster answers at ``address``: a process of its own asks, and is ended when it
    takes longer than ``patience`` seconds."""
    if address != "auto":
        _require_open(address, patience)
    asking = [sys.executable, "-c", _KNOCK, address]
    try:
        asked = subprocess.run(
            asking, capture_output=True, encoding="utf-8", errors="replace", timeout=patience, check=False
        )
    except subprocess.TimeoutExpired:
        raise _unreachable(address, f"no answer within {patience:g} seconds") from None
    if asked.returncode:
        raise _unreachable(address, _last_words(asked.stderr))


def _require_open(address: str, patience: float) -> None:
    written = re.fullmatch(r"(?:ray://)?\[?([^\[\]/]+?)\]?:(\d{1,5})", address)
    if written is None or int(written[2]) > 65_535:
        raise UsageError(
            f"--address {address!r} can't be read", expected="auto, HOST:PORT or ray://HOST:PORT", found=repr(address)
        )
    try:
        socket.create_connection((written[1], int(written[2])), timeout=patience).close()
    except OSError as error:
        raise _unreachable(address, error.strerror or str(error)) from error


def _unreachable(address: str, found: str) -> UsageError:
    return UsageError(
        f"no Ray cluster answers at {address!r}",
        expected="the address of a running cluster: auto, HOST:PORT or ray://HOST:PORT",
        found=found,
        fix="Is it running (ray status)? Without --address trials run on this machine, with nothing to start.",
    )


def _last_words(text: str) -> str:
    """What Ray complained of: the error that was the cause, not where in Ray it arose."""
    complaints = re.findall(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception)): (.+)$", text, re.MULTILINE)
    return f"{complaints[0][0]}: {shortened(complaints[0][1])}" if complaints else "a process that died"


def shortened(text: str) -> str:
    """What Ray says, as far as anybody reads it."""
    return text if len(text) <= 300 else f"{text[:299]}…"
