"""Keep a local Ray private.

Ray reads these variables when it is imported, so they must be set before.
"""

from __future__ import annotations

import os
import secrets


def keep_private() -> None:
    """Turn telemetry off, listen on the loopback interface only, and require a random token."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # On every system, this means no cluster, so that 127.0.0.1 is the node.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    # With this, a trial without a reserved GPU sees all of them.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
