"""Releases a framework's memory between two configurations of one process."""

from __future__ import annotations

from collections.abc import Callable


def freeing(framework: str) -> Callable[[], None]:
    """Return the function that frees what the framework keeps; for an unknown framework, it does
    nothing."""
    return {"torch": _free_torch, "jax": _free_jax, "keras": _free_keras}.get(
        framework, _free_nothing
    )


def _free_nothing() -> None:
    """Do nothing: the garbage collector has run."""


def _free_torch() -> None:
    import torch
    import torch._dynamo

    torch._dynamo.reset()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _free_jax() -> None:
    import jax

    jax.clear_caches()


def _free_keras() -> None:
    import keras

    keras.backend.clear_session()
