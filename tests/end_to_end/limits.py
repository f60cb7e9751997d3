"""Shortages: disks, memory and clocks that tests may use up. Most need root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

/* Once a file exists, the wall clock loses a day and runs backwards. Monotonic clocks go on. */
int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, now);
    struct stat jumped;
    if (!failed && which == CLOCK_REALTIME && stat(getenv("TEST_CLOCK_JUMPED"), &jumped) == 0) {
        now->tv_sec = 2 * jumped.st_mtime - now->tv_sec - 86400;
        now->tv_nsec = 999999999 - now->tv_nsec;
    }
    return failed;
}
"""


class NotHere(Exception):
    """Raised with the reason if this system does not allow it."""


@contextlib.contextmanager
def small_disk(folder: Path, kibibytes: int) -> Iterator[Path]:
    """Its own disk at ``folder``; raises :class:`NotHere`."""
    folder.mkdir()
    done = _system(
        "mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "trainmark-test", str(folder)
    )
    if done:
        raise NotHere(f"no disk can be mounted: {done}")
    try:
        yield folder
    finally:
        _system("umount", "-l", str(folder))


@contextlib.contextmanager
def closed(folder: Path) -> Iterator[Sequence[str]]:
    """No one may look into it; yields what a command begins with so that root may not either.
    Raises NotHere."""
    folder.chmod(0o000)
    try:
        prefix = (
            ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
            if os.geteuid() == 0
            else []
        )
        if prefix and (problem := _system(*prefix, "true")):
            raise NotHere(f"root can't be kept out of a folder: {problem}")
        yield prefix
    finally:
        folder.chmod(0o700)


def make_read_only(disk: Path) -> None:
    """No one can write there any more, root neither."""
    problem = _system("mount", "-o", "remount,ro", str(disk))
    assert not problem, problem


def fill(disk: Path, leave: int = 0) -> Path:
    """Use up a disk except for some bytes; returns the file that does."""
    filler = disk / "filler"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    filler.write_bytes(bytes(free - leave))
    return filler


@contextlib.contextmanager
def control_group(name: str, mebibytes: int) -> Iterator[Sequence[str]]:
    """A control group with this much memory; yields the start of a command that runs in it. Raises
    :class:`NotHere`."""
    old = Path("/sys/fs/cgroup/memory")
    new = Path("/sys/fs/cgroup")
    top, limit = (old, "memory.limit_in_bytes") if old.is_dir() else (new, "memory.max")
    folder = top / name
    try:
        folder.mkdir()
    except OSError as error:
        raise NotHere(f"no control group can be made: {error}") from error
    try:
        try:
            (folder / limit).write_text(str(mebibytes * 2**20))
        except OSError as error:
            raise NotHere(f"the memory of a control group can't be limited: {error}") from error
        for swap in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
            with contextlib.suppress(OSError):
                (folder / swap).write_text(str(mebibytes * 2**20 if "memsw" in swap else 0))
        yield ["sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh"]
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


def jumping_clock(folder: Path) -> dict[str, str]:
    """Return the environment in which the wall clock jumps once ``folder/jumped`` exists. Raises
    :class:`NotHere`."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NotHere("there is no C compiler")
    source = folder / "clock.c"
    library = folder / "clock.so"
    source.write_text(CLOCK)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True
    )
    return {"LD_PRELOAD": str(library), "TEST_CLOCK_JUMPED": str(folder / "jumped")}


def _system(*command: str) -> str:
    """Return the complaints of a system command; empty if there are none."""
    if not shutil.which(command[0]):
        return f"there is no `{command[0]}`"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"
