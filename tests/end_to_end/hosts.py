"""Several machines on one: network namespaces with their own addresses, joined by a cable that
can be cut."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """Its own machine, as far as the network goes."""

    name: str
    address: str
    cable: str

    @property
    def prefix(self) -> list[str]:
        """Return the start of a command that runs on it."""
        return ["ip", "netns", "exec", self.name]

    def cut_off(self) -> None:
        """Pull the cable: packets are lost, and no one is notified."""
        _ip("-n", self.name, "link", "set", self.cable, "down")


class NoHosts(Exception):
    """Raised with the reason if namespaces can't be made here."""


@contextlib.contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """Two machines with a cable between them; they are removed afterwards.

    Raises:
        NoHosts: this system does not allow it.
    """
    if not shutil.which("ip"):
        raise NoHosts("there is no `ip` command (iproute2)")
    number = os.getpid() % 100_000
    hosts = tuple(
        Host(f"trainmark-{number}-{end}", f"10.77.0.{end}", f"tm{number}e{end}") for end in (1, 2)
    )
    with contextlib.ExitStack() as stack:
        try:
            for host in hosts:
                _ip("netns", "add", host.name)
                stack.callback(_ip, "netns", "delete", host.name)
            first, second = hosts
            _ip("link", "add", first.cable, "netns", first.name, "type", "veth",
                "peer", "name", second.cable, "netns", second.name)  # fmt: skip
            for host in hosts:
                _ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", host.cable)
                for link in ("lo", host.cable):
                    _ip("-n", host.name, "link", "set", link, "up")
        except subprocess.CalledProcessError as error:
            raise NoHosts(
                f"network namespaces can't be made here: {error.stderr.strip()}"
            ) from error
        yield first, second


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
