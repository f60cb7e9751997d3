"""Which of the driver's GPUs CUDA exposes to a framework, and under which number."""

from __future__ import annotations

import os
from collections.abc import Mapping

from trainmark import units
from trainmark.measure.vendor import Driver, Gpu

VISIBLE = "CUDA_VISIBLE_DEVICES"
HIDE_ALL = ("", "-1", "void", "none", "NoDevFiles")

ORDER = "CUDA_DEVICE_ORDER"
"""Environment variable that decides in which order CUDA numbers the GPUs."""
_BY_BUS = "PCI_BUS_ID"
"""Its value for the order of the driver; without it, the fastest GPU comes first."""


def shown_by(value: str, found: Driver) -> tuple[tuple[Gpu, ...], str | None]:
    """Return the GPUs that CUDA exposes for a value of ``CUDA_VISIBLE_DEVICES``.

    Also returns what is wrong with the value.

    CUDA reads the words in order and stops at the first that is not a GPU; with a repeated word it
    exposes none; of MIG instances it exposes only the first. Numbers are the driver's, as with
    ``CUDA_DEVICE_ORDER=PCI_BUS_ID``.
    """
    words = [word.strip() for word in value.split(",")]
    if value.strip() in HIDE_ALL:
        return (), "it hides every GPU from the frameworks"
    if len(set(words)) < len(words):
        return (), "a GPU is named twice, so CUDA shows none"
    named: list[Gpu] = []
    for word in words:
        gpu = _named(word, found)
        if gpu is None:
            left = units.many(len(named), "GPU") if named else "none"
            return tuple(
                named
            ), f"{word!r} is not a GPU of this machine; CUDA shows those before it: {left}"
        named.append(gpu)
        if word.startswith("MIG-"):
            break
    return tuple(named), None


def shown(driver: Driver, environment: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Return the GPUs that a framework should see."""
    value = environment.get(VISIBLE)
    if value is None:
        return tuple(gpu for gpu in driver.gpus if gpu.problem is None)
    return shown_by(value, driver)[0]


def number_of(
    device: str, driver: Driver, environment: Mapping[str, str] = os.environ
) -> int | None:
    """Return the driver's number of a framework's ``cuda:N``.

    The result is None for any other device or if unknown.

    CUDA numbers the fastest GPU first unless ``CUDA_DEVICE_ORDER=PCI_BUS_ID``, so with different
    GPUs only CUDA knows. And an instance of a divided GPU (MIG) is not the GPU that the driver
    measures.
    """
    kind, _, index = device.partition(":")
    seen = shown(driver, environment)
    if kind != "cuda" or not index.isdecimal() or int(index) >= len(seen):
        return None
    if environment.get(ORDER) != _BY_BUS and len({gpu.name for gpu in driver.gpus}) > 1:
        return None
    found = seen[int(index)]
    return None if found.mig else found.index


def _named(word: str, found: Driver) -> Gpu | None:
    """Return the GPU that a word of ``CUDA_VISIBLE_DEVICES`` refers to."""
    if word.startswith("MIG-"):
        return next((gpu for gpu in found.gpus if gpu.mig), None)
    if word.isdecimal():
        return next(
            (gpu for gpu in found.gpus if gpu.index == int(word) and gpu.problem is None), None
        )
    return next(
        (gpu for gpu in found.gpus if gpu.uuid and len(word) > 4 and gpu.uuid.startswith(word)),
        None,
    )
