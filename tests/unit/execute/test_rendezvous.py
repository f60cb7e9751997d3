"""Where machines meet, from words and from Slurm's environment; the network is made up."""

from __future__ import annotations

import pytest

from trainmark.errors import UsageError
from trainmark.execute.parent.rendezvous import LocalNetwork, first_host, from_slurm, meet


class MadeUp(LocalNetwork):
    """``node1`` is this machine's 10.0.0.1, ``node2`` another; there is no way to ``island``."""

    def __init__(self) -> None:
        super().__init__({"127.0.0.1": "lo", "10.0.0.1": "eth0"})

    def resolve(self, host: str) -> str:
        known = {
            "node1": "10.0.0.1",
            "node2": "10.0.0.2",
            "island": "10.9.9.9",
            "10.0.0.1": "10.0.0.1",
            "fd00::2": "fd00::2",
            "myself": "127.0.1.1",
        }
        if host not in known:
            raise OSError(-2, "Name or service not known")
        return known[host]

    def towards(self, address: str) -> str:
        if address == "10.9.9.9":
            raise OSError(101, "Network is unreachable")
        return "10.0.0.1"


def test_one_machine_needs_no_place() -> None:
    found = meet(1, None, 60.0, MadeUp())
    assert (found.nodes, found.endpoint, found.address) == (1, "", None)


@pytest.mark.parametrize(
    ("endpoint", "expected", "is_host"),
    [
        ("node1:1234", "10.0.0.1:1234", True),
        ("node2:1234", "10.0.0.2:1234", False),
        ("node2", "10.0.0.2:29400", False),
        ("10.0.0.1:7", "10.0.0.1:7", True),
        ("[fd00::2]:7", "[fd00::2]:7", False),
        ("fd00::2", "[fd00::2]:29400", False),
        ("myself:5", "127.0.1.1:5", True),
    ],
)
def test_the_machine_that_has_the_address_is_the_host(
    endpoint: str, expected: str, is_host: bool
) -> None:
    found = meet(2, endpoint, 9.0, MadeUp())
    assert (found.endpoint, found.is_host, found.seconds) == (expected, is_host, 9.0)
    assert (found.address, found.interface) == ("10.0.0.1", "eth0")


def test_a_machine_without_a_network_address_is_no_rendezvous() -> None:
    lonely = MadeUp()
    object.__setattr__(lonely, "addresses", {"127.0.0.1": "lo"})
    with pytest.raises(UsageError, match="only a loopback address"):
        meet(2, "myself:5", 9.0, lonely)


@pytest.mark.parametrize(
    ("endpoint", "text"),
    [
        (None, "2 machines need a rendezvous address: expected --rdzv-endpoint HOST:PORT"),
        ("nowhere:1", "can't be reached from here.*Name or service not known"),
        ("island:1", "can't be reached from here.*Network is unreachable"),
        ("node1:port", "can't be read"),
        ("node1:0", "can't be read"),
        ("node1:70000", "can't be read"),
        (":29400", "can't be read"),
    ],
)
def test_bad_places(endpoint: str | None, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        meet(2, endpoint, 9.0, MadeUp())


@pytest.mark.parametrize(
    ("listed", "first"),
    [
        ("login", "login"),
        ("a,b", "a"),
        ("node[03-05,9],login", "node03"),
        ("gpu[7]", "gpu7"),
        ("n[1,3]-ib", "n1-ib"),
        ("x-[001-004]-y,z", "x-001-y"),
    ],
)
def test_the_first_host_of_a_slurm_list(listed: str, first: str) -> None:
    assert first_host(listed) == first


def test_slurm_that_names_no_machine_is_an_error() -> None:
    with pytest.raises(UsageError, match="lists no machines"):
        first_host("")


STEP = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_JOB_ID": "31234"}


def test_a_slurm_step_with_one_task_a_machine() -> None:
    environment = STEP | {
        "SLURM_STEP_NUM_NODES": "2",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_NODELIST": "n[5-6]",
    }
    assert from_slurm(environment) == (2, "n5:16234")


@pytest.mark.parametrize(
    "environment",
    [{}, {"SLURM_JOB_ID": "1", "SLURM_NNODES": "4"}, STEP | {"SLURM_STEP_NUM_NODES": "1"}],
    ids=["none", "a batch script's own shell", "one machine"],
)
def test_elsewhere_there_is_one_machine(environment: dict[str, str]) -> None:
    assert from_slurm(environment) is None


def test_several_tasks_on_a_machine_would_each_start_all_ranks() -> None:
    with pytest.raises(
        UsageError, match=r"expected one task per machine, 2, found 8 tasks.*--ntasks-per-node 1"
    ):
        from_slurm(
            STEP
            | {
                "SLURM_STEP_NUM_NODES": "2",
                "SLURM_STEP_NUM_TASKS": "8",
                "SLURM_STEP_NODELIST": "n[5-6]",
            }
        )
