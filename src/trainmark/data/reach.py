"""Which hosts answer at all: asked of all of them at once, with one deadline for everybody.

``getaddrinfo`` takes no timeout and may block for half a minute where there is no network, so each host is tried in a
thread of its own that nobody waits for beyond the deadline. The threads are daemons (those of ``concurrent.futures``
are not: the interpreter would wait for them on exit).
"""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable
from typing import TypeAlias
from urllib.parse import urlsplit

Endpoint: TypeAlias = tuple[str, int]
Connect: TypeAlias = Callable[[Endpoint, float], None]
"""Connects to a host and port within some seconds and hangs up, or raises OSError."""

_PORTS = {"http": 80, "https": 443}


def connect(endpoint: Endpoint, seconds: float) -> None:
    """Resolves the host's name, connects by TCP and hangs up; raises OSError."""
    socket.create_connection(endpoint, timeout=seconds).close()


def endpoint(url: str) -> Endpoint:
    """Host and port that a request for ``url`` connects to: the proxy's, where the environment names one."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.netloc):
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 80)


class Probes:
    """Connection attempts under way, one for each host behind the URLs.

    Args:
        urls: what is going to be requested.
        seconds: how long they all have, from now.
        connect: how to try one.
    """

    def __init__(self, urls: Iterable[str], seconds: float, connect: Connect = connect) -> None:
        self._seconds = seconds
        self._connect = connect
        self._deadline = time.monotonic() + seconds
        self._answered = {endpoint(url): threading.Event() for url in urls}
        self._refusals: dict[Endpoint, OSError] = {}

    def start(self) -> Probes:
        """Sends them all off; returns itself."""
        self._deadline = time.monotonic() + self._seconds
        for to in self._answered:
            threading.Thread(target=self._try, args=(to,), name=f"reach {to[0]}", daemon=True).start()
        return self

    def wait(self, url: str) -> None:
        """Returns once the host of ``url`` has answered; raises OSError when it refused or the time is over."""
        to = endpoint(url)
        if not self._answered[to].wait(max(0.0, self._deadline - time.monotonic())):
            raise TimeoutError(f"no answer from {to[0]} within {self._seconds:g} s")
        if to in self._refusals:
            raise self._refusals[to]

    def _try(self, to: Endpoint) -> None:
        try:
            self._connect(to, self._seconds)
        except OSError as error:
            self._refusals[to] = error
        except UnicodeError as error:  # what getaddrinfo raises for a name that IDNA can't encode
            self._refusals[to] = OSError(str(error))
        finally:
            self._answered[to].set()
