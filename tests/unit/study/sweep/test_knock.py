"""Addresses that are none, and those where nobody answers."""

from __future__ import annotations

import socket
import time

import pytest

from trainmark.errors import UsageError
from trainmark.study.sweep import knock


@pytest.mark.parametrize("address", ["somewhere", "host:99999", "http://host:80", "ray://host"])
def test_what_is_no_address_is_said_at_once(address: str) -> None:
    with pytest.raises(UsageError, match="expected auto, HOST:PORT or ray://HOST:PORT"):
        knock.knock(address)


def test_somebody_who_listens_and_is_no_ray_is_not_waited_for_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        with pytest.raises(UsageError, match="no answer within 1 seconds"):
            knock.knock(f"127.0.0.1:{silent.getsockname()[1]}", patience=1.0)
    assert time.monotonic() - started < 10


def test_what_ray_said_is_cut_to_the_error() -> None:
    text = "W 08:00 gcs\nTraceback (most recent call last):\n  File x\nray.exceptions.AuthenticationError: no token\n"
    assert knock._last_words(text) == "AuthenticationError: no token"
    assert knock._last_words("") == "a process that died"
