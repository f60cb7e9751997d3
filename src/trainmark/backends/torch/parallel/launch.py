"""``torchrun``'s launcher.

It starts the ranks of this machine, connects to other machines, and watches all ranks.
"""

from __future__ import annotations

import dataclasses
import logging
import signal
import time
from pathlib import Path
from typing import Any

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous.api import (
    RendezvousConnectionError,
    RendezvousTimeoutError,
)
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from trainmark.backends.layout import Fall, LaunchSpec, Rendezvous
from trainmark.errors import RendezvousFailed

_SETTLE_SECONDS = 5
"""How long a rank may take to end after a request."""
_AGAIN_SECONDS = 0.5


def launch(asked: LaunchSpec) -> Fall | None:
    """Start the ranks and wait for their end; see :class:`~trainmark.backends.layout.Launching`."""
    logging.getLogger("torch.distributed").setLevel(logging.ERROR)
    deadline = time.monotonic() + asked.rendezvous.seconds
    command, *arguments = asked.command
    serves = asked.rendezvous.is_host
    while True:
        try:
            elastic_launch(_configuration(asked, deadline, serves=serves), command)(*arguments)
        except ChildFailedError as error:
            return _fall(error.failures, Path(asked.logs))
        except RendezvousTimeoutError as error:
            raise _nobody(asked.rendezvous, "not all of them connected") from error
        except RendezvousConnectionError as error:
            # The host may not be ready, or still be ending the previous run; or another process
            # here is the host.
            if time.monotonic() + _AGAIN_SECONDS > deadline:
                raise _nobody(asked.rendezvous, "no answer from the endpoint") from error
            serves = asked.rendezvous.is_host and not serves
            time.sleep(_AGAIN_SECONDS)
        else:
            return None


def _configuration(asked: LaunchSpec, deadline: float, *, serves: bool) -> LaunchConfig:
    place = asked.rendezvous
    left = max(1, round(deadline - time.monotonic()))
    several = place.nodes > 1
    settings: dict[str, Any] = {
        "min_nodes": place.nodes,
        "max_nodes": place.nodes,
        "nproc_per_node": asked.ranks,
        "run_id": place.name,
        "role": "rank",
        "rdzv_backend": "c10d",
        "rdzv_endpoint": place.endpoint if several else "localhost:0",
        "rdzv_configs": {
            "timeout": left,
            "join_timeout": left,
            "read_timeout": min(left, 15),
            "is_host": serves if several else True,
        },
        "local_addr": place.address if several else "localhost",
        "max_restarts": 0,
        "monitor_interval": 0.1,
        "logs_specs": DefaultLogsSpecs(log_dir=asked.logs, tee=Std.ALL),
        "log_line_prefix_template": "[rank ${rank}] ",
        "shutdown_timeout": _SETTLE_SECONDS,
    }
    # Older versions of PyTorch lack the last setting.
    known = {field.name for field in dataclasses.fields(LaunchConfig)}
    return LaunchConfig(**{name: value for name, value in settings.items() if name in known})


def _fall(failures: dict[int, Any], logs: Path) -> Fall:
    """Return the rank that failed first.

    A rank that was ended or lost its peer in an all-reduce is not it.
    """

    def place(rank: int) -> tuple[bool, bool]:
        code = failures[rank].exitcode
        return code == -signal.SIGTERM, code > 0

    rank = min(failures, key=place)
    failure = failures[rank]
    printed = sorted(logs.glob(f"*/attempt_*/{failure.local_rank}/stderr.log"))
    return Fall(rank, failure.exitcode, str(printed[-1]) if printed else None)


def _nobody(place: Rendezvous, found: str) -> RendezvousFailed:
    return RendezvousFailed(
        "the machines of this training did not connect",
        expected=f"{place.nodes} machines at {place.endpoint} within {place.seconds:g} s",
        found=found,
        fix="Start the same command on every machine, and check that all can reach the port of "
        "--rdzv-endpoint.",
    )
