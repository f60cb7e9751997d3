"""Where the machines of one training connect, from the options or Slurm's environment."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from trainmark.backends.layout import Rendezvous
from trainmark.errors import UsageError

DEFAULT_PORT = 29400
"""Default port, as in ``torchrun``."""
_FIRST_JOB_PORT = 15_000
"""First port for jobs of Slurm; a job's number chooses one of the ports from there on."""
_JOB_PORTS = 10_000
"""Number of ports for jobs of Slurm."""


@dataclass(frozen=True)
class LocalNetwork:
    """This machine among others.

    Args:
        addresses: its addresses, each with its interface.
    """

    addresses: Mapping[str, str]

    def resolve(self, host: str) -> str:
        """Return the address of ``host``; raises OSError."""
        return socket.getaddrinfo(host, None, socket.AF_UNSPEC, socket.SOCK_STREAM)[0][4][0]  # type: ignore[return-value]

    def towards(self, address: str) -> str:
        """Return the source address of packets to ``address``; nothing is sent. Raises OSError."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return str(probe.getsockname()[0])

    @property
    def outward(self) -> str:
        """Return an address of this machine that others can reach; raises OSError if there is none.

        On many machines the host name resolves to 127.0.1.1, which is of no use to others.
        """
        for address in self.addresses:
            if not _is_loopback(address) and not address.lower().startswith("fe80"):
                return address
        raise OSError(99, "this machine has only a loopback address")


def local_network() -> LocalNetwork:
    """Return this machine's current network."""
    import psutil

    found: dict[str, str] = {}
    for name, addresses in psutil.net_if_addrs().items():
        for each in addresses:
            if each.family in (socket.AF_INET, socket.AF_INET6):
                found[each.address.partition("%")[0]] = name
    return LocalNetwork(found)


def meet(nodes: int, endpoint: str | None, seconds: float, network: LocalNetwork) -> Rendezvous:
    """Return the rendezvous of ``nodes`` machines at ``endpoint``.

    Args:
        endpoint: ``host`` or ``host:port``, the same on every machine.
        seconds: time to wait for the others.

    Raises:
        UsageError: no endpoint for several machines, or one that this machine can't reach.
    """
    if nodes == 1:
        return Rendezvous(seconds=seconds)
    if not endpoint:
        raise UsageError(
            f"{nodes} machines need a rendezvous address",
            expected="--rdzv-endpoint HOST:PORT, the same on every machine, where HOST is one of "
            "them",
        )
    host, port = _split(endpoint)
    try:
        address = network.resolve(host)
        own = network.outward if _is_loopback(address) else network.towards(address)
    except OSError as error:
        raise UsageError(
            f"--rdzv-endpoint {endpoint!r} can't be reached from here",
            expected="HOST:PORT of one of the machines",
            found=error.strerror or str(error),
        ) from error
    is_host = address in network.addresses or _is_loopback(address)
    interface = network.addresses.get(own)
    place = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    return Rendezvous(nodes, place, is_host, address=own, interface=interface, seconds=seconds)


def from_slurm(environment: Mapping[str, str]) -> tuple[int, str] | None:
    """Return the number of machines and the endpoint of the current Slurm step.

    The result is None without one, or on one machine.

    Raises:
        UsageError: a step with several tasks on a machine; each would start all ranks of it.
    """
    if "SLURM_STEP_ID" not in environment or "SLURM_PROCID" not in environment:
        return None
    nodes = int(environment.get("SLURM_STEP_NUM_NODES") or environment.get("SLURM_NNODES") or 1)
    tasks = int(environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS") or nodes)
    if tasks > nodes:
        raise UsageError(
            "this Slurm step has several tasks per machine, and each would start all ranks of "
            "the machine",
            expected=f"one task per machine, {nodes}",
            found=f"{tasks} tasks",
            fix=f"srun --nodes {nodes} --ntasks-per-node 1 trainmark scale ...",
        )
    if nodes == 1:
        return None
    listed = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_NODELIST") or ""
    port = _FIRST_JOB_PORT + int(environment.get("SLURM_JOB_ID") or 0) % _JOB_PORTS
    return nodes, f"{first_host(listed)}:{port}"


def first_host(listed: str) -> str:
    """Return the first host of a Slurm host list such as ``node[03-05,9],login``."""
    found = re.match(r"([^,\[]*)(?:\[([^\]-]*?)(?:[-,][^\]]*)?\]([^,\[]*))?", listed)
    if found is None or not found[0]:
        raise UsageError(
            "Slurm lists no machines",
            expected="a host list in SLURM_STEP_NODELIST",
            found=repr(listed),
        )
    return "".join(part or "" for part in found.groups())


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def _split(endpoint: str) -> tuple[str, int]:
    host, colon, port = endpoint.rpartition(":")
    if not colon or (
        ":" in host and not host.endswith("]")
    ):  # there is no port, or it is a bare IPv6
        return endpoint.strip("[]"), DEFAULT_PORT
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise UsageError(
            f"--rdzv-endpoint {endpoint!r} can't be read", expected="HOST:PORT such as node1:29400"
        )
    return host.strip("[]"), int(port)
