"""What differs between the images, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Device = Literal["cpu", "cuda"]

_PYTORCH_CPU = """\
# PyTorch's builds for the CPU are not on the usual index, so they can't be in the lock: the version is exact, unhashed.
# With an empty TORCH_INDEX, pip's own index decides; a build with CUDA can't be imported here, so the image ends there.
ARG TORCH_INDEX=
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \\
    /opt/trainmark/bin/pip install --no-deps ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch==2.13.0
RUN /opt/trainmark/bin/python -B -c "import torch" \\
 || { echo "expected PyTorch's build for the CPU: name the index that has it, --torch-index URL" >&2; exit 1; }"""


@dataclass(frozen=True)
class Flavour:
    """One image.

    Attributes:
        name: the end of the image's tag.
        device: what it computes on.
        title: in words.
        base: the image that it stands on, by a tag; a build pins it by its digest.
        lock: file with the exact versions, and hashes, of what is installed.
        framework: instructions that install a framework which the lock can't hold.
        venv_options: of `python3 -m venv`, each followed by a space.
        environment: more variables of the image.
        run_options: what ``docker run`` needs beside a folder for the records, a host's name and the GPUs.
    """

    name: str
    device: Device
    title: str
    base: str
    lock: str
    framework: str = ""
    venv_options: str = ""
    environment: tuple[str, ...] = ()
    run_options: tuple[str, ...] = ()

    @property
    def dockerfile(self) -> str:
        """The name of its file; plain ``docker build`` takes the one for the CPU."""
        return "Dockerfile" if self.name == "cpu" else f"Dockerfile.{self.name}"


# As NVIDIA's own images ask for it: memory shared by loaders and NCCL, memory locked for copies, stacks for compilers.
_FOR_GPUS = ("--ipc=host", "--ulimit", "memlock=-1", "--ulimit", "stack=67108864")

CPU = Flavour(
    name="cpu",
    device="cpu",
    title="the CPU",
    base="docker.io/library/debian:bookworm-slim",
    lock="requirements-cpu.txt",
    framework=_PYTORCH_CPU,
)
# PyTorch brings the CUDA libraries it was built with, so the smallest of NVIDIA's images does: it has the settings by
# which the container runtime passes the driver in. Its CUDA is that of the PyTorch in the lock.
CUDA = Flavour(
    name="cuda",
    device="cuda",
    title="NVIDIA GPUs",
    base="docker.io/nvidia/cuda:13.0.3-base-ubuntu24.04",
    lock="requirements-cuda.txt",
    environment=("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"),
    run_options=_FOR_GPUS,
)
NGC = Flavour(
    name="ngc",
    device="cuda",
    title="NVIDIA GPUs, with the PyTorch of NVIDIA's own image",
    base="nvcr.io/nvidia/pytorch:26.04-py3",
    lock="requirements-ngc.txt",
    venv_options="--system-site-packages ",
    environment=CUDA.environment,
    run_options=_FOR_GPUS,
)


def flavour(device: Device, *, ngc: bool = False) -> Flavour:
    """The image for a device; ``ngc``: on NVIDIA's own image with PyTorch."""
    if device == "cpu":
        return CPU
    return NGC if ngc else CUDA
