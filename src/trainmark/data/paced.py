"""A request whose server can't hold us: not by silence, and not by dribbling either.

A timeout of a socket starts anew with every byte, so a server that sends one now and then is never done. Therefore
another thread, which nobody waits for beyond the deadline, talks to it (as in :mod:`trainmark.data.reach`).
"""

from __future__ import annotations

import http.client
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

LEAST_BYTES_PER_SECOND = 2048
"""Slower than this no server may be; a modem of 1998 was faster."""
_BLOCK = 1 << 16
_BLOCKS_AHEAD = 16


class TooSlow(OSError):
    """The server sent nothing, or too little."""


class Response:
    """What a server answers, read by another thread.

    Args:
        opener: sends the request, and follows redirects.
        request: what is asked for.
        seconds: within which the answer must begin, and within which each stretch of it must come.
        least: bytes a second that a stretch must have.

    Raises:
        OSError, http.client.HTTPException: what the network did wrong; :class:`TooSlow` is one of them.
    """

    def __init__(
        self,
        opener: urllib.request.OpenerDirector,
        request: urllib.request.Request,
        seconds: float,
        least: float = LEAST_BYTES_PER_SECOND,
    ) -> None:
        self._seconds, self._least = seconds, least
        self._arrived: queue.Queue[http.client.HTTPResponse | bytes | Exception] = queue.Queue(_BLOCKS_AHEAD)
        self._unwanted = threading.Event()
        threading.Thread(target=self._receive, args=(opener, request), name="download", daemon=True).start()
        head = self._next(time.monotonic() + seconds)
        if head is None:
            self.close()
            raise self._too_slow(0)
        assert isinstance(head, http.client.HTTPResponse)
        self.status, self.headers = head.status, head.headers

    def blocks(self) -> Iterator[bytes]:
        """The body, as it comes."""
        while True:
            deadline, came = time.monotonic() + self._seconds, 0
            while came < self._least * self._seconds:
                block = self._next(deadline)
                if block is None:
                    raise self._too_slow(came)
                assert isinstance(block, bytes)
                if not block:
                    return
                came += len(block)
                yield block

    def close(self) -> None:
        """Nothing more is wanted; the thread ends with the next byte that it gets, or with its socket's timeout."""
        self._unwanted.set()

    def _next(self, deadline: float) -> http.client.HTTPResponse | bytes | None:
        """What comes next; None when it is not there in time."""
        try:
            found = self._arrived.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            reason = found.reason if isinstance(found, urllib.error.URLError) else found
            raise self._too_slow(0) if isinstance(reason, TimeoutError) else found
        return found

    def _too_slow(self, came: int) -> TooSlow:
        return TooSlow(f"sent {f'only {came:,} bytes' if came else 'nothing'} for {self._seconds:g} s")

    def _receive(self, opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> None:
        try:
            # Its own timeout comes after ours, and only ends a thread that nobody waits for any more.
            with opener.open(request, timeout=self._seconds + 1.0) as response:
                self._hand_over(response)
                while not self._unwanted.is_set():
                    block = response.read1(_BLOCK)
                    self._hand_over(block)
                    if not block:
                        return
        except Exception as error:  # noqa: BLE001  (whatever it is, it is raised where somebody waits for it)
            self._hand_over(error)

    def _hand_over(self, found: http.client.HTTPResponse | bytes | Exception) -> None:
        while not self._unwanted.is_set():
            try:
                self._arrived.put(found, timeout=1.0)
                return
            except queue.Full:
                continue
