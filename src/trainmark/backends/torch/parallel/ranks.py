"""The processes of one training, started by ``torchrun``: their process group and its mesh."""

from __future__ import annotations

import atexit
import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

from trainmark.backends.engines import torch as engines
from trainmark.backends.layout import Layout
from trainmark.errors import RanksDiffer

PIPELINE = "pipeline"
"""Name of the mesh's dimension whose ranks are the stages of one copy."""
DATA = "data"
"""Name of the mesh's dimension whose ranks are copies of one stage."""


class Ranks:
    """This process as one rank of its training.

    Joining waits for the other ranks, and fails after the layout's patience.
    """

    def __init__(self, layout: Layout, device: str) -> None:
        place = engines.local_device(torch.device(device).type, int(os.environ["LOCAL_RANK"]))
        engines.make_current(place)
        self.layout = layout
        self.device = place
        timeout = timedelta(seconds=layout.patience)
        self.rank = int(os.environ["RANK"])
        found = int(os.environ["WORLD_SIZE"])
        if found != layout.ranks:
            raise RanksDiffer(
                "the machines were started with different layouts",
                expected=f"{layout.ranks} ranks in total, as here",
                found=str(found),
                fix="Give the same command on every machine.",
            )
        kind = engines.collectives(place)
        store = _store(timeout)
        dist.init_process_group(
            kind, store=store, rank=self.rank, world_size=layout.ranks, timeout=timeout
        )
        # The threads of the process group must end before the interpreter does.
        atexit.register(dist.destroy_process_group)
        # Consecutive ranks are the stages of one copy, since these communicate most.
        mesh = init_device_mesh(
            place.type, (layout.data, layout.pipeline), mesh_dim_names=(DATA, PIPELINE)
        )
        self.copy = mesh.get_local_rank(DATA)
        self.stage = mesh.get_local_rank(PIPELINE)
        self.copies = mesh.get_group(DATA)
        self.stages = mesh.get_group(PIPELINE)
        # The mesh creates its groups with a timeout of half an hour.
        for group in (self.copies, self.stages):
            dist.distributed_c10d._set_pg_timeout(timeout, group)

    def gather(self, value: Any) -> list[Any]:
        """Return the value of each rank, in rank order."""
        gathered: list[Any] = [None] * self.layout.ranks
        dist.all_gather_object(gathered, value)
        return gathered

    def total(self, values: Tensor) -> Tensor:
        """Return the sum of ``values`` over all ranks."""
        dist.all_reduce(values)
        return values

    def meet(self) -> None:
        """Return when every rank has called this and its device is idle."""
        engines.synchronize(self.device)
        dist.barrier(device_ids=engines.indices(self.device))
        engines.synchronize(self.device)


def _store(timeout: timedelta) -> dist.Store:
    """Return the store with the ranks' addresses.

    The launcher keeps one store for all attempts, and PyTorch's ``env://`` would find addresses of
    the previous attempt in it (2.13: connection refused after about half of the restarts).
    """
    served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=not served and os.environ["RANK"] == "0",
        timeout=timeout,
    )
    return dist.PrefixStore(f"attempt-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
