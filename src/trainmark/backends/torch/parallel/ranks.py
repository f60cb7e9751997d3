"""The processes of one training, as ``torchrun`` started them: the group that they form, and the mesh over it."""

from __future__ import annotations

import atexit
import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

from trainmark.backends.layout import Layout
from trainmark.errors import RanksDiffer

PIPELINE, DATA = "pipeline", "data"


class Ranks:
    """This process among all of its training.

    Joining waits for the others; whoever does not come within the layout's patience ends it.
    """

    def __init__(self, layout: Layout, device: str) -> None:
        place = torch.device(device)
        if place.type == "cuda":  # every rank of a machine takes a GPU of its own
            place = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(place)
        self.layout, self.device = layout, place
        timeout = timedelta(seconds=layout.patience)
        self.rank = int(os.environ["RANK"])
        if (found := int(os.environ["WORLD_SIZE"])) != layout.ranks:
            raise RanksDiffer(
                "the machines were asked for different layouts",
                expected=f"{layout.ranks} ranks in all, as here",
                found=str(found),
                fix="Give the same command on every machine.",
            )
        dist.init_process_group(
            "nccl" if place.type == "cuda" else "gloo",
            store=_store(timeout),
            rank=self.rank,
            world_size=layout.ranks,
            timeout=timeout,
        )
        atexit.register(dist.destroy_process_group)  # its threads must have ended before the interpreter has
        # Neighbours in rank are the stages of one copy: they talk most.
        mesh = init_device_mesh(place.type, (layout.data, layout.pipeline), mesh_dim_names=(DATA, PIPELINE))
        self.copy, self.stage = mesh.get_local_rank(DATA), mesh.get_local_rank(PIPELINE)
        self.copies, self.stages = mesh.get_group(DATA), mesh.get_group(PIPELINE)
        for group in (self.copies, self.stages):  # the mesh makes them with half an hour
            dist.distributed_c10d._set_pg_timeout(timeout, group)

    def gather(self, value: Any) -> list[Any]:
        """What each rank gives, in the order of the ranks."""
        gathered: list[Any] = [None] * self.layout.ranks
        dist.all_gather_object(gathered, value)
        return gathered

    def total(self, values: Tensor) -> Tensor:
        """The sum of ``values`` over all ranks."""
        dist.all_reduce(values)
        return values

    def meet(self) -> None:
        """Return when every rank has called it and its device has nothing left to do."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            dist.barrier(device_ids=[self.device.index])
            torch.cuda.synchronize(self.device)
        else:
            dist.barrier()


def _store(timeout: timedelta) -> dist.Store:
    """Where the ranks read each other's addresses.

    The launcher keeps one store over all attempts, and PyTorch's own ``env://`` would find addresses of the attempt
    before in it (2.13: connection refused after a restart, as often as not).
    """
    served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=not served and os.environ["RANK"] == "0",
        timeout=timeout,
    )
    return dist.PrefixStore(f"attempt-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
