"""The measured process must not outlive its parent, however the parent ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable

from trainmark.execute.protocol.wire import Channel, Message


def tie(
    channel: Channel, inbox: Callable[[Message], object], before: Callable[[], object] | None = None
) -> None:
    """End this process with the parent, and pass the parent's messages on to ``inbox`` until then.

    On Linux the kernel does this, even while this process hangs in native code. Elsewhere the
    socket closes with the parent, and then the whole process group is killed.

    Args:
        before: called first; the process then ends shortly after the parent. Only for processes
            that run no native code.
    """
    if before is None:
        set_parent_death_signal = 1
        control(set_parent_death_signal, signal.SIGKILL)

    def wait() -> None:
        messages = channel.receive()
        while messages is not None:
            for message in messages:
                inbox(message)
            messages = channel.receive()
        if before is not None:
            before()
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def control(option: int, value: int) -> None:
    """Call Linux's ``prctl`` for this process; does nothing elsewhere."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value)
