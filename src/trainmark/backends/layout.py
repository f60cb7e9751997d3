"""How one training is spread over several processes ("ranks") or devices, and what they must agree on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from trainmark.errors import RanksDiffer


@dataclass(frozen=True)
class Layout:
    """Copies of a network, each cut into stages: ``data`` × ``pipeline`` devices.

    Args:
        data: copies of the network; each takes its share of every batch.
        pipeline: stages that each copy is cut into, one a device.
        microbatches: pieces that a copy's share of a batch goes through the stages in.
        reduces: whether the copies average their gradients; without it each trains for itself, which tells what the
            averaging costs and is no training of the workload.
        patience: seconds that a rank waits for the others before it gives up.
    """

    data: int = 1
    pipeline: int = 1
    microbatches: int = 1
    reduces: bool = True
    patience: float = 20.0

    @property
    def ranks(self) -> int:
        """Devices in all."""
        return self.data * self.pipeline

    @property
    def title(self) -> str:
        """``2×1`` is two copies of an undivided network."""
        return f"{self.data}×{self.pipeline}"


@dataclass(frozen=True)
class Rendezvous:
    """Where the ranks of several machines find each other, as ``torchrun`` has it.

    Args:
        nodes: machines; with one there is nothing to find.
        endpoint: ``host:port`` that all of them reach.
        is_host: whether that is this machine, which then serves it.
        name: the same on all machines, another one for every run.
        address: of this machine, by which the others reach it.
        interface: of the network, by the system's name; None leaves the choice to the framework.
        seconds: how long to wait for the others to come.
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
    """What an engine is asked to start on this machine.

    Args:
        command: of one rank.
        ranks: how many of them on this machine.
        device: that they train on, such as ``cpu`` or ``cuda:0``, where every rank takes one of its own.
        logs: an empty folder for what the ranks print.
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
        rank: its number among all.
        exit_code: below 0, the signal that killed it.
        log: the file of what it printed; None where there is none.
    """

    rank: int
    exit_code: int
    log: str | None


@runtime_checkable
class RankTrainer(Protocol):
    """What the trainer of one rank can do more than another :class:`~trainmark.backends.base.Trainer`."""

    def gather(self, value: Any) -> list[Any]:
        """What each rank gives, in the order of the ranks."""


@runtime_checkable
class Launching(Protocol):
    """A backend whose ranks are processes, started by an engine of its framework."""

    def launch(self, launch: LaunchSpec) -> Fall | None:
        """Start the ranks of this machine and wait for their end; None when all came to it.

        Raises:
            RendezvousFailed: the other machines did not come.
        """


def require_agreement(facts: Sequence[Mapping[str, str]]) -> None:
    """Raise :class:`~trainmark.errors.RanksDiffer` unless every rank gives the same facts.

    Args:
        facts: of each rank, in their order, the telling ones first; ``host`` alone may differ.
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
