"""Keep a local Ray private. Ray reads these variables when it is imported, so they must be set
before.
"""

from __future__ import annotations

import os
import secrets


def keep_private() -> None:
    """Turn telemetry off, listen only on the loopback interface, and require a random token from
    every connection.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # on every system: no cluster, so 127.0.0.1 is the node
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    # a trial without a reserved GPU sees all
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
