"""Addresses that are malformed, and those where no Ray answers."""

from __future__ import annotations

import socket
import time

import pytest

from trainmark.errors import UsageError
from trainmark.study.sweep import ray_address


@pytest.mark.parametrize("address", ["somewhere", "host:99999", "http://host:80", "ray://host"])
def test_a_malformed_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(UsageError, match="expected auto, HOST:PORT or ray://HOST:PORT"):
        ray_address.require_reachable(address)


def test_a_listener_that_is_not_ray_is_given_up_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        with pytest.raises(UsageError, match="no answer within 1 seconds"):
            ray_address.require_reachable(f"127.0.0.1:{silent.getsockname()[1]}", patience=1.0)
    assert time.monotonic() - started < 0.9 * ray_address.PATIENCE_SECONDS
