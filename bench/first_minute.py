"""What a new user sees, and when: a command in a terminal, as text with time stamps.

    python bench/first_minute.py [--columns 100] [--every 5] -- trainmark run

It prints every line that stays on the screen, a sample of the temporary lines at a fixed interval,
and when the first rate (samples/s), the first interval and the end came.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Iterator

import pyte

ROWS = 200
MILESTONES = {
    "first rate": r"\d[\d.,]*k? (samples|tokens)/s",
    "first interval": r"\[\d\S*, \d\S*\]",
}


def outputs(words: list[str], columns: int) -> Iterator[tuple[float, bytes]]:
    """Run a command in a terminal; yield what it prints, with the seconds since the start."""
    start = time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(ROWS)}
        os.execvp(words[0], words)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    while True:
        select.select([terminal], [], [])
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the command has ended
            break
        yield time.perf_counter() - start, data
    _, status = os.waitpid(child, 0)
    yield (
        time.perf_counter() - start,
        f"(exit code {os.waitstatus_to_exitcode(status)})\r\n".encode(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--every", type=float, default=5.0)
    parser.add_argument("words", nargs="+", metavar="COMMAND")
    options = parser.parse_args()
    screen = pyte.Screen(options.columns, ROWS)
    stream = pyte.ByteStream(screen)
    came: dict[str, float] = {}
    found: dict[str, float] = {}
    snapshots: list[tuple[float, list[str]]] = []
    lines = list[str]()
    now = 0.0
    for now, data in outputs(options.words, options.columns):
        stream.feed(data)
        lines = [line.rstrip() for line in screen.display if line.strip()]
        for line in lines:
            came.setdefault(line, now)
            for name, pattern in MILESTONES.items():
                if name not in found and re.search(pattern, line):
                    found[name] = now
        if not snapshots or now - snapshots[-1][0] >= options.every:
            snapshots.append((now, lines))
    stays = set(lines)
    transcript = [(came[line], 0, line) for line in stays]
    transcript += [(at, 1, line) for at, seen in snapshots for line in seen if line not in stays]
    order = {line: number for number, line in enumerate(lines)}
    for at, _, line in sorted(
        transcript, key=lambda each: (each[0], each[1], order.get(each[2], 0))
    ):
        print(f"{at:6.1f} s  {line}")
    print(
        "; ".join(
            f"{name} after {seconds:.1f} s" for name, seconds in (*found.items(), ("end", now))
        )
    )


if __name__ == "__main__":
    main()
