"""The measured process must not outlive the parent that asked for it, however that one ends."""

from __future__ import annotations

import os
import signal
import sys
import threading

from trainmark.execute.wire import Channel


def tie(channel: Channel) -> None:
    """Die with the parent.

    On Linux the kernel sees to it, even while this process hangs in native code. Elsewhere the socket tells: it closes
    with the parent, and the whole process group goes.
    """
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    threading.Thread(target=_leave_when_alone, args=(channel,), daemon=True).start()


def _leave_when_alone(channel: Channel) -> None:
    while channel.receive() is not None:
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)
