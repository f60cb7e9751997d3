"""A training on several processes, on the measured side.

One process starts the ranks and relays their messages.

Each rank is an ordinary worker. It connects to the launcher by a socket in the file system, sends
its rank, and gets the request. Its messages are passed on to the parent in an envelope; those of
this machine's first rank are also passed on unchanged, so that observers see one training. Only its
final message waits until all ranks have ended.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from trainmark.backends import layout, registry
from trainmark.backends.layout import Fall, Launching
from trainmark.errors import ProtocolError, Unsupported
from trainmark.execute.protocol.answers import Done, Failed, OfRank, RankBorn
from trainmark.execute.protocol.wire import (
    SCRATCH,
    Channel,
    Message,
    Send,
    counter,
    shared_page,
    signal_name,
)
from trainmark.execute.protocol.worker_commands import StartRanks, Train
from trainmark.execute.worker.slices import Turns
from trainmark.scratch import scratch_folder

BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
RANK_FLAG = "--rank"
_HOST_VARIABLE = "TRAINMARK_HOST"
_HELD = ("Finished", "Done", "Failed")
"""Messages of this machine's first rank that are passed on only at the end."""
_TAIL_BYTES = 4_096
"""Bytes from the end of a failed rank's output that are reported."""
_FAREWELL_SECONDS = 2.0
"""Seconds to wait for the last messages of each rank."""
_OVERDUE_SECONDS = 5.0
"""Seconds for an engine to notice that a rank has failed; one that waits for a lost machine never
does."""


def launch(request: StartRanks, send: Send, position_descriptor: int, turns: Turns) -> None:
    """Start the ranks of ``request``, pass on their ``turns``, and report how they ended."""
    training = request.training
    rendezvous = request.rendezvous
    backend = registry.load(training.backend)
    if not isinstance(backend, Launching):
        raise Unsupported(
            f"{training.backend} does not train on several processes", expected="the backend torch"
        )
    os.environ[_HOST_VARIABLE] = " at ".join(
        filter(None, (socket.gethostname(), rendezvous.address))
    )
    if rendezvous.interface:
        for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(variable, rendezvous.interface)
    with scratch_folder(Path(os.environ[SCRATCH])) as folder:
        relay = _Relay(Path(folder) / "line", training, send, position_descriptor)
        threading.Thread(target=relay.pass_down, args=(turns,), daemon=True).start()
        logs = Path(folder) / "logs"
        logs.mkdir()
        command = sys.executable, str(BOOTSTRAP), RANK_FLAG, str(relay.address)
        spec = layout.LaunchSpec(
            command, request.ranks, training.options.device, rendezvous, str(logs)
        )
        with relay.listening():
            fall = backend.launch(spec)
        if fall is not None:
            # The first rank that reports a failure is the cause: the others only lose the
            # connection to it.
            rank = next(iter(relay.reasons), fall.rank) if fall.exit_code >= 0 else fall.rank
            send(Failed(_reason(fall, rank, relay.reasons), rank))
            return
    relay.let_go()


def answer(address: str) -> tuple[Channel, Callable[[], None]]:
    """Return a rank's connection to its launcher, and the function that counts its steps."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    channel = Channel(line)
    rank, local_rank = (int(os.environ[name]) for name in ("RANK", "LOCAL_RANK"))
    channel.send(RankBorn(rank, local_rank, host_name()))
    _, (descriptor,), _, _ = socket.recv_fds(line, 1, 1)
    return channel, counter(descriptor)


def host_name() -> str:
    """Return this machine's name, as other machines may know it."""
    return os.environ.get(_HOST_VARIABLE) or socket.gethostname()


class _Relay:
    """Relays messages between the parent and the ranks of this machine."""

    def __init__(
        self, address: Path, training: Train, send: Send, position_descriptor: int
    ) -> None:
        self.address = address
        self._overdue: threading.Timer | None = None
        self.reasons: dict[int, str] = {}
        self._training = training
        self._send = send
        self._position = position_descriptor
        self._speaking = threading.Lock()
        self._held: list[Message] = []
        self._lines: list[Channel] = []
        self._readers: list[threading.Thread] = []

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Answer connections; on exit, all messages have been passed on."""
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(self.address))
            door.listen()
            threading.Thread(target=self._open_to_all, args=(door,), daemon=True).start()
            try:
                yield
            finally:
                with self._speaking:
                    if self._overdue is not None:
                        self._overdue.cancel()
        for reader in self._readers:
            reader.join(_FAREWELL_SECONDS)

    def pass_down(self, turns: Turns) -> None:
        """Send the parent's messages to every rank, once all have started."""
        while True:
            message = turns.get()
            for line in self._lines:
                with contextlib.suppress(OSError):  # its reader notices the closed connection
                    line.send(message)

    def let_go(self) -> None:
        """Send the messages held back until all ranks have ended."""
        for message in self._held:
            self._send(message)

    def _open_to_all(self, door: socket.socket) -> None:
        while True:
            try:
                line, _ = door.accept()
            except OSError:
                return  # the socket was closed
            reader = threading.Thread(target=self._hear_out, args=(line,), daemon=True)
            self._readers.append(reader)
            reader.start()

    def _hear_out(self, line: socket.socket) -> None:
        channel = Channel(line)
        place: Message = {}
        last = None
        # The end of a rank is reported by the engine, or below.
        with line, contextlib.suppress(OSError, ProtocolError):
            messages = channel.receive()
            while messages is not None:
                for message in messages:
                    if message["event"] == RankBorn.__name__:
                        place = message
                        self._greet(line, channel, place)
                    self._pass_on(place, message)
                    last = message["event"]
                messages = channel.receive()
        if place and last not in ("Done", "Diverged"):
            with self._speaking:
                self._worry(place)

    def _worry(self, place: Message) -> None:
        """Handle a failed rank in case the engine does not."""
        if self._overdue is None:
            self._overdue = threading.Timer(_OVERDUE_SECONDS, self._give_up, args=(place["rank"],))
            self._overdue.daemon = True
            self._overdue.start()

    def _give_up(self, rank: int) -> None:
        """Tell the parent to end this process, because the engine hangs."""
        with self._speaking:
            reason = f"rank {rank}: {self.reasons.get(rank, 'died without output')}"
            self._send(Failed(reason, rank))
            self._send(Done())

    def _greet(self, line: socket.socket, channel: Channel, place: Message) -> None:
        if place["local_rank"] == 0:
            socket.send_fds(line, [b"\n"], [self._position])
        else:  # one count of the steps is enough
            unread = shared_page()
            socket.send_fds(line, [b"\n"], [unread])
            os.close(unread)
        channel.send(self._training)
        self._lines.append(channel)

    def _pass_on(self, place: Message, message: Message) -> None:
        with self._speaking:
            if message["event"] == Failed.__name__:
                self.reasons[place["rank"]] = message["reason"]
            self._send(OfRank(place["rank"], message))
            if place["local_rank"] == 0 and message["event"] != RankBorn.__name__:
                if message["event"] in _HELD:
                    self._held.append(message)
                else:
                    self._send(message)


def _reason(fall: Fall, rank: int, reasons: dict[int, str]) -> str:
    """How the first failed rank ended, with its last output."""
    if fall.exit_code >= 0:
        return f"rank {rank}: {reasons.get(rank, f'ended with exit code {fall.exit_code}')}"
    words = _last_words(fall)
    tail = f"; its last output: {words}" if words else ", without output"
    return f"rank {fall.rank} was killed by {signal_name(fall.exit_code)}{tail}"


def _last_words(fall: Fall) -> str:
    try:
        printed = Path(fall.log or "").read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
    except OSError:
        return ""
    return (printed.strip().splitlines() or [""])[-1]
