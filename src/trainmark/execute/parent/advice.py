"""What to do about a run that has failed, by signs in the reason of its failure."""

from __future__ import annotations

_ADVICE = (
    (
        ("out of memory", "resource_exhausted", "cannot allocate memory", "busy or unavailable"),
        "close other programs that use the memory (nvidia-smi lists those on a GPU), and repeat "
        "the command with "
        "--resume",
    ),
    (
        (
            "cuda error",
            "hip error",
            "cudnn error",
            "gpu is lost",
            "no cuda-capable device",
            "no hip gpus",
        ),
        "the device or its driver may have failed: trainmark doctor tests it, and dmesg has the "
        "driver's own message; "
        "then repeat the command with --resume",
    ),
    (
        ("sigsegv", "sigbus", "sigill"),
        "the framework or a driver has crashed: trainmark doctor tests each device",
    ),
)
"""Parts of reasons, in lower case, and what to do; the first that fits counts."""


def with_advice(reason: str) -> str:
    """Return the reason of a failure, followed by what to do about it, if that is known."""
    message = reason.lower()
    for signs, advice in _ADVICE:
        if any(sign in message for sign in signs):
            return f"{reason.rstrip('.')}; {advice}"
    return reason
