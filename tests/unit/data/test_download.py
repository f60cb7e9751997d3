from __future__ import annotations

import contextlib
import io
import time
import urllib.request
from http.client import HTTPMessage
from pathlib import Path

import pytest

from trainmark.data import download as download_module
from trainmark.data.download import DownloadFailed, download
from trainmark.data.progress import silent

from .site import Handler, Page, Site, endless, hanging_up, serving, serving_ranges, web_page

CONTENT = bytes(range(256)) * 1000


def get(site: Site, part: Path, stall_seconds: float = 5) -> bytes:
    download(f"{site.url}/file", part, most=300_000, stall_seconds=stall_seconds, name="file", progress=silent)
    return part.read_bytes()


@pytest.fixture
def part(tmp_path: Path) -> Path:
    return tmp_path / "file.part"


def test_everything_arrives_and_progress_says_so(site: Site, part: Path) -> None:
    site.pages["/file"] = serving(CONTENT)
    seen: list[tuple[int, int | None, str]] = []
    url = f"{site.url}/file"
    download(url, part, most=300_000, stall_seconds=5, name="f", progress=lambda *facts: seen.append(facts))
    assert part.read_bytes() == CONTENT
    assert (seen[0], seen[-1]) == ((0, 256_000, "f"), (256_000, 256_000, "f"))
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)


def test_a_part_is_continued(site: Site, part: Path) -> None:
    site.pages["/file"] = serving_ranges(CONTENT)
    part.write_bytes(CONTENT[:100_000])
    assert get(site, part) == CONTENT
    assert site.requests == [("/file", "bytes=100000-")]


def test_a_server_without_ranges_begins_again(site: Site, part: Path) -> None:
    site.pages["/file"] = serving(CONTENT)
    part.write_bytes(b"x" * 100_000)
    assert get(site, part) == CONTENT


@pytest.mark.parametrize("size", [256_000, 256_001, 400_000])
def test_a_part_that_is_too_long_is_discarded(site: Site, part: Path, size: int) -> None:
    site.pages["/file"] = serving_ranges(CONTENT)
    part.write_bytes(b"x" * size)
    assert get(site, part) == CONTENT
    assert site.requests[-1] == ("/file", None)


def test_another_range_is_refused(site: Site, part: Path) -> None:
    def page(handler: Handler) -> None:
        handler.start(206, 10, Content_Range="bytes 0-9/256000")
        handler.wfile.write(CONTENT[:10])

    site.pages["/file"] = page
    part.write_bytes(CONTENT[:100])
    with pytest.raises(DownloadFailed, match="another range"):
        get(site, part)
    assert part.read_bytes() == CONTENT[:100]


def test_hanging_up_early_keeps_what_came(site: Site, part: Path) -> None:
    site.pages["/file"] = hanging_up(CONTENT, 70_000)
    with pytest.raises(DownloadFailed, match="hung up after 70,000 of 256,000 bytes"):
        get(site, part)
    assert part.read_bytes() == CONTENT[:70_000]


def test_a_stall_ends(site: Site, part: Path) -> None:
    site.pages["/file"] = site.stalling(CONTENT, 70_000)
    begin = time.monotonic()
    with pytest.raises(DownloadFailed, match=r"sent nothing for 0\.3 s"):
        get(site, part, stall_seconds=0.3)
    assert time.monotonic() - begin < 2
    assert part.read_bytes() == CONTENT[:70_000]


def test_a_server_that_never_answers(site: Site, part: Path) -> None:
    def page(handler: Handler) -> None:
        site.closing.wait(30)

    site.pages["/file"] = page
    with pytest.raises(DownloadFailed, match=r"sent nothing for 0\.3 s"):
        get(site, part, stall_seconds=0.3)


def dribbling(site: Site, begin: bytes, every_seconds: float = 0.05) -> Page:
    """Sends the beginning at once, then one byte now and then, so that no single wait is long."""

    def page(handler: Handler) -> None:
        handler.wfile.write(begin)
        with contextlib.suppress(OSError):  # until the other side has hung up
            while not site.closing.wait(every_seconds):
                handler.wfile.write(b"x")

    return page


def sent_on(to: str) -> Page:
    def page(handler: Handler) -> None:
        handler.start(302, 0, Location=to)

    return page


@pytest.mark.parametrize(
    ("begin", "reason"),
    [
        (b"", "sent nothing for 0.3 s"),
        (b"HTTP/1.1 200 OK\r\nX-", "sent nothing for 0.3 s"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 256000\r\n\r\n", "sent only . bytes for 0.3 s"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "sent nothing for 0.3 s"),
    ],
    ids=["answer", "header", "body", "chunk"],
)
def test_a_server_that_dribbles(site: Site, part: Path, begin: bytes, reason: str) -> None:
    site.pages["/file"] = dribbling(site, begin)
    start = time.monotonic()
    with pytest.raises(DownloadFailed, match=reason):
        get(site, part, stall_seconds=0.3)
    assert time.monotonic() - start < 2


def test_a_length_of_thousands_of_digits_is_none(site: Site, part: Path) -> None:
    def page(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nabc")
        handler.close_connection = True

    site.pages["/file"] = page
    assert get(site, part) == b"abc", "what the content is, its checksum tells"


def test_a_redirect_is_followed(site: Site, part: Path) -> None:
    site.pages["/file"], site.pages["/other"] = sent_on("/other"), serving(CONTENT)
    get(site, part)
    assert part.read_bytes() == CONTENT


@pytest.mark.parametrize("to", ["ftp://127.0.0.1/file", "file:///etc/hostname", "data:,x"])
def test_a_redirect_leads_nowhere_but_to_the_web(site: Site, part: Path, to: str) -> None:
    site.pages["/file"] = sent_on(to)
    with pytest.raises(DownloadFailed, match=r"sent us on to|not allowed"):
        get(site, part)
    assert not part.exists()


def test_who_asked_with_tls_is_not_sent_on_without() -> None:
    tls = urllib.request.Request("https://mirror.invalid/file")
    sender = download_module._NeverBackToPlain()
    for there in ("http://mirror.invalid/file", "HTTP://mirror.invalid/file"):
        with pytest.raises(DownloadFailed, match="sent us on to http:"):
            sender.redirect_request(tls, io.BytesIO(), 302, "Found", HTTPMessage(), there)
    further = sender.redirect_request(tls, io.BytesIO(), 302, "Found", HTTPMessage(), "https://other.invalid/file")
    assert further is not None
    assert further.full_url == "https://other.invalid/file"


def not_http(handler: Handler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH\r\n")
    handler.close_connection = True


def silence(handler: Handler) -> None:
    handler.close_connection = True


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (web_page(), "web page"),
        (web_page(start=b"<!-- no doctype -->"), "web page"),
        (web_page("application/x-gzip"), "web page"),
        (serving(CONTENT * 2), "would send 512,000 bytes"),
        (endless(), "sent more than the 300,000 bytes"),
        (not_http, "broke off: SSH"),
        (silence, "broke off: Remote end closed"),
    ],
)
def test_other_things_are_refused(site: Site, part: Path, page: Page, reason: str) -> None:
    site.pages["/file"] = page
    with pytest.raises(DownloadFailed, match=reason):
        get(site, part)
    assert not part.exists() or not part.read_bytes()


def test_not_found(site: Site, part: Path) -> None:
    with pytest.raises(DownloadFailed, match="HTTP 404 Not Found"):
        get(site, part)


def test_a_part_that_cannot_be_written_is_no_fault_of_the_mirror(site: Site, tmp_path: Path) -> None:
    site.pages["/file"] = serving(CONTENT)
    with pytest.raises(FileNotFoundError):
        get(site, tmp_path / "absent" / "file.part")
