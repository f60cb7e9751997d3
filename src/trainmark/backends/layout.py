"""How one training is distributed over several processes ("ranks") or devices.

The ranks must agree on some facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from trainmark.errors import RanksDiffer


@dataclass(frozen=True)
class Layout:
    """Copies of a network, each split into stages: ``data`` × ``pipeline`` devices.

    Args:
        data: number of copies; each trains on its share of every batch.
        pipeline: number of stages of each copy, one per device.
        microbatches: number of pieces that a copy's share of a batch is split into.
        reduces: whether the copies average their gradients. Without, each trains alone, which shows
            the cost of the all-reduce but is not a valid training of the workload.
        patience: seconds that a rank waits for the others before it gives up.
    """

    data: int = 1
    pipeline: int = 1
    microbatches: int = 1
    reduces: bool = True
    patience: float = 20.0

    @property
    def ranks(self) -> int:
        """Number of devices."""
        return self.data * self.pipeline

    @property
    def title(self) -> str:
        """Text such as ``2×1`` for two copies of an undivided network."""
        return f"{self.data}×{self.pipeline}"


@dataclass(frozen=True)
class Rendezvous:
    """Where the ranks of several machines connect, as with ``torchrun``.

    Args:
        nodes: number of machines; if 1, the rest is not used.
        endpoint: ``host:port`` that all machines can reach.
        is_host: whether the endpoint is on this machine, which then serves it.
        name: the same on all machines, and different for every run.
        address: address of this machine for the others.
        interface: name of the network interface; None leaves the choice to the framework.
        seconds: how long to wait for the other machines.
    """

    nodes: int = 1
    endpoint: str = ""
    is_host: bool = True
    name: str = "trainmark"
    address: str | None = None
    interface: str | None = None
    seconds: float = 60.0


@dataclass(frozen=True)
class LaunchSpec:
    """What an engine should start on this machine.

    Args:
        command: command of one rank.
        ranks: number of ranks on this machine.
        device: their device, such as ``cpu`` or ``cuda:0``; for the latter, every rank takes a
            separate GPU.
        logs: an empty folder for the output of the ranks.
    """

    command: Sequence[str]
    ranks: int
    device: str
    rendezvous: Rendezvous
    logs: str


@dataclass(frozen=True)
class Fall:
    """The first rank that failed.

    Args:
        rank: its number among all ranks.
        exit_code: its exit code; if negative, the signal that killed it.
        log: file with its output; None if there is none.
    """

    rank: int
    exit_code: int
    log: str | None


@runtime_checkable
class RankTrainer(Protocol):
    """What the trainer of a rank provides in addition to other trainers."""

    def gather(self, value: Any) -> list[Any]:
        """Return the value of each rank, in rank order."""


@runtime_checkable
class Launching(Protocol):
    """A backend with ranks as processes, started by an engine of its framework."""

    def launch(self, launch: LaunchSpec) -> Fall | None:
        """Start the ranks of this machine and wait for their end; returns None if all succeeded.

        Raises:
            RendezvousFailed: the other machines did not connect.
        """


def require_agreement(facts: Sequence[Mapping[str, str]]) -> None:
    """Raise :class:`~trainmark.errors.RanksDiffer` unless the facts of all ranks are equal.

    Args:
        facts: the facts of each rank, in rank order, the most informative first; only ``host`` may
            differ.
    """
    first = facts[0]
    for rank, theirs in enumerate(facts):
        for name in dict.fromkeys([*first, *theirs]):
            if name != "host" and first.get(name) != theirs.get(name):
                raise RanksDiffer(
                    f"the ranks differ in their {name}",
                    expected=f"{first.get(name)} as on {first['host']} (rank 0)",
                    found=f"{theirs.get(name)} on {theirs['host']} (rank {rank})",
                    fix="Give the same command on every machine, with the same versions and data.",
                )
