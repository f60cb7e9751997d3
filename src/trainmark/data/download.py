"""Download one URL with requests.

Only the parent process imports this module, and only when it needs a mirror.
"""

from __future__ import annotations

from typing import IO, Any

import requests

from trainmark.data.on_bytes import OnBytes

TIMEOUT = (4.0, 15.0)
"""Seconds to wait for a connection, and then for the next bytes."""
_BLOCK = 1 << 16


class DownloadFailed(Exception):
    """Why a mirror could not serve a file, as a clause.

    ``fetch`` catches it and tries the next mirror.
    """


class Unreachable(DownloadFailed):
    """No connection: unknown host, no route, refused, or no answer in time."""


def download(
    url: str,
    file: IO[bytes],
    *,
    most: int,
    progress: OnBytes,
    timeout: tuple[float, float] = TIMEOUT,
) -> None:
    """Write what ``url`` serves into ``file``.

    Args:
        url: http or https.
        file: open for writing, empty.
        most: size limit in bytes; a larger response can't be right.
        progress: called with the bytes received, the bytes announced and the last part of the URL.
        timeout: as in requests: for the connection, and for each read, in seconds.

    Raises:
        DownloadFailed: the server can't be reached, refused, stopped sending, or sent something
            else.
        OSError: ``file`` can't be written.
    """
    try:
        # "identity": compression by the server would make the announced length meaningless.
        response = requests.get(
            url, stream=True, timeout=timeout, headers={"Accept-Encoding": "identity"}
        )
    except requests.ConnectionError as error:
        raise Unreachable(f"no answer: {_cause(error)}") from error
    except (requests.RequestException, ValueError) as error:  # a redirect may have an invalid URL
        raise DownloadFailed(_cause(error)) from error
    with response:
        if not response.ok:
            raise DownloadFailed(f"HTTP {response.status_code} {response.reason}")
        if response.headers.get("Content-Type", "").startswith("text/html"):
            raise DownloadFailed("served a web page instead of the file")
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() and len(length) < 20 else None
        if total is not None and total > most:
            raise DownloadFailed(f"announced {total:,} bytes, expected at most {most:,}")
        _receive(response, file, most, total, url.rpartition("/")[2], progress)


def _receive(
    response: requests.Response,
    file: IO[bytes],
    most: int,
    total: int | None,
    name: str,
    progress: OnBytes,
) -> None:
    done = 0
    progress(done, total, name)
    try:
        for block in response.iter_content(_BLOCK):
            done += len(block)
            if done > most:
                raise DownloadFailed(f"sent more than the expected {most:,} bytes")
            file.write(block)
            progress(done, total, name)
    except requests.RequestException as error:
        raise DownloadFailed(f"stopped after {done:,} bytes: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    """Return the innermost message.

    The outer ones, from requests and urllib3, repeat host, port and URL.
    """
    inner = error
    deeper = _cause_of(inner)
    while isinstance(deeper, Exception):
        inner = deeper
        deeper = _cause_of(inner)
    return str(inner).rpartition("): ")[2]


def _cause_of(error: Exception) -> Any:
    """Return the error that this one wraps, or something else if there is none."""
    return getattr(error, "reason", None) or [None, *error.args][-1]
