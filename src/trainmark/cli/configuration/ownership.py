"""Whether a file can only have been written by the user."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def objection(file: Path, status: os.stat_result) -> str | None:
    """Return why a file may be another user's work; None if it is the user's own.

    Args:
        file: its path, which may be a link.
        status: of the file that was opened there.

    Raises:
        OSError: it no longer exists.
    """
    for each in (status, file.lstat()):
        if each.st_uid != os.geteuid():
            return f"it belongs to {_name(each.st_uid)}, not to you"
    if _others_can_write(status):
        return f"other users can write it (mode {stat.S_IMODE(status.st_mode):03o})"
    folder = file.parent.stat()
    # In a sticky folder such as /tmp, others can't replace a file of this user.
    if _others_can_write(folder) and not folder.st_mode & stat.S_ISVTX:
        return f"other users can replace it (mode {stat.S_IMODE(folder.st_mode):03o} of its folder)"
    return None


def _name(user: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # as of a folder that is mounted into a container
        return f"user {user}"


def _others_can_write(status: os.stat_result) -> bool:
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_private_group(status.st_gid)


def _is_private_group(group: int) -> bool:
    """Whether only this user is in a group.

    Many Linux systems make such a group for each user and let it write new files (umask 002). Root
    has none: other administrators may be in its group.
    """
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid())
        found = grp.getgrgid(group)
    except KeyError:
        return False
    is_own = (user.pw_gid, user.pw_name) == (group, found.gr_name)
    return is_own and os.geteuid() != 0 and not {*found.gr_mem} - {user.pw_name}
