"""One URL to one part file, resumed where an earlier attempt stopped."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

from trainmark.data.paced import Response, TooSlow
from trainmark.data.progress import Progress

_PARTIAL_CONTENT = 206
_RANGE_NOT_SATISFIABLE = 416
_MOST_DIGITS = 18
"""Of a length that is believed; Python refuses to read numbers of thousands of digits."""


class DownloadFailed(Exception):
    """Why a mirror could not serve a file, as a clause. Never leaves ``trainmark.data``: the next mirror is tried."""


class _NothingLeft(DownloadFailed):
    """The server has no bytes beyond those that the part file holds."""


def download(url: str, part: Path, *, most: int, stall_seconds: float, name: str, progress: Progress) -> None:
    """Fetches ``url`` into ``part``.

    When ``part`` exists, only the rest is asked for; a server that sends everything again may. What arrived stays in
    ``part`` on failure, for the next attempt.

    Args:
        url: http or https.
        part: the file to write or to continue.
        most: bytes above which it can't be the right thing.
        stall_seconds: how long the server may send nothing, or next to nothing.
        name: what is fetched, for ``progress``.
        progress: called as bytes arrive.

    Raises:
        DownloadFailed: the server refused, stalled, hung up early or sent something else.
        OSError: the part file can't be written.
    """
    have = part.stat().st_size if part.exists() else 0
    try:
        with closing(_open(url, have, stall_seconds)) as response:
            _receive(response, part, have, most, name, progress)
    except _NothingLeft:
        part.unlink()
        with closing(_open(url, 0, stall_seconds)) as response:
            _receive(response, part, 0, most, name, progress)


def _open(url: str, first: int, stall_seconds: float) -> Response:
    """The response to a request for the bytes from ``first`` on."""
    # Without "identity" some servers compress what is compressed already, and lengths no longer tell anything.
    headers = {"User-Agent": "trainmark", "Accept-Encoding": "identity"}
    if first:
        headers["Range"] = f"bytes={first}-"
    request = urllib.request.Request(url, headers=headers)
    try:
        with _network():
            return Response(_opener(), request, stall_seconds)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == _RANGE_NOT_SATISFIABLE and first:
            raise _NothingLeft from error
        raise DownloadFailed(f"HTTP {error.code} {error.reason}") from error


def _opener() -> urllib.request.OpenerDirector:
    """HTTP with and without TLS, and no file, FTP or data, which urllib would follow a redirect to as well."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        _NeverBackToPlain(),
    ):
        opener.add_handler(handler)
    return opener


class _NeverBackToPlain(urllib.request.HTTPRedirectHandler):
    """Who asked with TLS is not sent on without."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        scheme = urllib.parse.urlsplit(newurl).scheme.lower()
        if scheme not in ("http", "https") or (req.type == "https" and scheme != "https"):
            fp.close()
            raise DownloadFailed(f"sent us on to {scheme}:, which is not as safe")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _receive(response: Response, part: Path, have: int, most: int, name: str, progress: Progress) -> None:
    """Appends the response to ``part``, or replaces it when the server begins at the beginning."""
    if response.headers.get_content_type() == "text/html":
        raise DownloadFailed("served a web page instead of the file")
    resumes = response.status == _PARTIAL_CONTENT
    if resumes and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
        raise DownloadFailed(f"sent another range than bytes {have}-")
    done = have if resumes else 0
    announced = response.headers.get("Content-Length", "")
    believed = announced.isdecimal() and len(announced) <= _MOST_DIGITS
    total = done + int(announced) if believed else None
    if total is not None and total > most:
        raise DownloadFailed(f"would send {total:,} bytes where at most {most:,} can be right")

    with part.open("ab" if resumes else "wb") as file:
        progress(done, total, name)
        for block in _blocks(response):
            if not done and _is_web_page(block):
                raise DownloadFailed("served a web page instead of the file")
            done += len(block)
            if done > most:
                file.truncate(0)
                raise DownloadFailed(f"sent more than the {most:,} bytes that can be right")
            file.write(block)
            progress(done, total, name)
    if total is not None and done < total:
        raise DownloadFailed(f"hung up after {done:,} of {total:,} bytes")


def _blocks(response: Response) -> Iterator[bytes]:
    blocks = response.blocks()
    while True:
        with _network():
            block = next(blocks, b"")
        if not block:
            return
        yield block


def _is_web_page(block: bytes) -> bool:
    """Login pages and notices come with status 200, and not always with an honest content type."""
    return block.lstrip()[:9].lower().startswith((b"<!doctype", b"<html"))


@contextmanager
def _network() -> Iterator[None]:
    """Turns what the network does wrong into DownloadFailed, except an HTTP status, whose meaning the caller knows."""
    try:
        yield
    except urllib.error.HTTPError:
        raise
    except TooSlow as error:
        raise DownloadFailed(str(error)) from error
    except (OSError, http.client.HTTPException) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        raise DownloadFailed(f"broke off: {str(cause) or type(cause).__name__}") from error
