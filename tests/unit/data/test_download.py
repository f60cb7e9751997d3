from __future__ import annotations

import errno
import io
from pathlib import Path

import pytest

from trainmark.data.download import DownloadFailed, Unreachable, download
from trainmark.data.on_bytes import silent

from .site import Handler, Page, Site, endless, hanging_up, serving, web_page

CONTENT = bytes(range(256)) * 1000
PATIENT = (100, 100)
QUICK = (100, 2)
"""Seconds to connect, and to wait for each read; the tests' own server may be slow, too."""


def get(url: str, timeout: tuple[float, float] = PATIENT) -> bytes:
    file = io.BytesIO()
    download(url, file, most=300_000, progress=silent, timeout=timeout)
    return file.getvalue()


def test_everything_arrives_and_progress_says_so(site: Site) -> None:
    site.pages["/file"] = serving(CONTENT)
    seen: list[tuple[int, int | None, str]] = []
    file = io.BytesIO()
    download(f"{site.url}/file", file, most=300_000, progress=lambda *facts: seen.append(facts))
    assert file.getvalue() == CONTENT
    assert (seen[0], seen[-1]) == ((0, 256_000, "file"), (256_000, 256_000, "file"))
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)


def test_a_length_of_thousands_of_digits_is_none(site: Site) -> None:
    def page(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nabc")
        handler.close_connection = True

    site.pages["/file"] = page
    assert get(f"{site.url}/file") == b"abc", "the checksum decides about the content"


def redirecting(to: str) -> Page:
    def page(handler: Handler) -> None:
        handler.start(302, 0, Location=to)

    return page


def test_a_redirect_is_followed(site: Site) -> None:
    site.pages["/file"] = redirecting("/other")
    site.pages["/other"] = serving(CONTENT)
    assert get(f"{site.url}/file") == CONTENT


def test_a_redirect_to_nonsense_is_no_answer(site: Site) -> None:
    site.pages["/file"] = redirecting("http://[x/")
    with pytest.raises(DownloadFailed, match="IPv6"):
        get(f"{site.url}/file")


@pytest.mark.parametrize("to", ["ftp://127.0.0.1/file", "file:///etc/hostname", "data:,x"])
def test_a_redirect_leads_nowhere_but_to_the_web(site: Site, to: str) -> None:
    site.pages["/file"] = redirecting(to)
    with pytest.raises(DownloadFailed, match="No connection adapters"):
        get(f"{site.url}/file")


def not_http(handler: Handler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH\r\n")
    handler.close_connection = True


def silence(handler: Handler) -> None:
    handler.close_connection = True


def never_answers(handler: Handler) -> None:
    handler.site.closing.wait(100)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (web_page(), "served a web page instead of the file"),
        (serving(CONTENT * 2), "announced 512,000 bytes, expected at most 300,000"),
        (endless(), "sent more than the expected 300,000 bytes"),
        (
            hanging_up(CONTENT, 70_000),
            r"stopped after 65,536 bytes: .*IncompleteRead\(70000 bytes read",
        ),
        (not_http, "SSH-2.0-OpenSSH"),
        (silence, "Remote end closed connection"),
        (never_answers, r"Read timed out\. \(read timeout=2\)"),
    ],
)
def test_other_things_are_refused(site: Site, page: Page, reason: str) -> None:
    site.pages["/file"] = page
    with pytest.raises(DownloadFailed, match=reason):
        get(f"{site.url}/file", QUICK if page is never_answers else PATIENT)


def test_a_stall_ends(site: Site) -> None:
    site.pages["/file"] = site.stalling(CONTENT, 70_000)
    with pytest.raises(DownloadFailed, match=r"stopped after 65,536 bytes: Read timed out"):
        get(f"{site.url}/file", QUICK)


def test_not_found(site: Site) -> None:
    with pytest.raises(DownloadFailed, match="HTTP 404 Not Found"):
        get(f"{site.url}/file")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:9/file", "Connection refused"),  # no server uses the port "discard"
        ("http://mirror.invalid/file", "resolve"),  # RFC 6761: a name that never exists
    ],
)
def test_a_host_that_cannot_be_reached(url: str, reason: str) -> None:
    with pytest.raises(Unreachable, match=f"no answer: .*{reason}"):
        get(url)


def test_a_disk_that_is_full_is_no_fault_of_the_mirror(site: Site) -> None:
    site.pages["/file"] = serving(CONTENT)
    with Path("/dev/full").open("wb") as full, pytest.raises(OSError) as caught:
        download(f"{site.url}/file", full, most=300_000, progress=silent)
    assert caught.value.errno == errno.ENOSPC
