from __future__ import annotations

import gzip
import hashlib
import time
from pathlib import Path

import pytest

from trainmark.data import fetch as fetch_module
from trainmark.data.catalog import Mirror
from trainmark.data.download import Unreachable
from trainmark.data.fetch import fetch
from trainmark.data.on_bytes import silent

from .archives import tar_gz
from .samples import Sample, digits, pictures
from .site import Site, hanging_up, serving, web_page

PATIENT = (100, 100)
QUICK = (100, 2)
"""Seconds to connect, and to wait for each read; the tests' own server may be slow, too."""


def serve(site: Site, folder: str, sample: Sample) -> Mirror:
    """Puts the files on the site as most mirrors have them."""
    for name, content in sample.contents.items():
        site.pages[f"/{folder}/{name}.gz"] = serving(gzip.compress(content, mtime=0))
    return Mirror(f"{site.url}/{folder}/")


def whole(sample: Sample, directory: Path) -> bool:
    """Whether the folder holds exactly the right files."""
    here = {path.name: path.read_bytes() for path in directory.iterdir()}
    return here == {file.name: sample.contents[file.name] for file in sample.known.files}


def test_compressed_files(site: Site, tmp_path: Path) -> None:
    sample = digits(serve(site, "a", digits()))
    seen: list[tuple[int, int | None, str]] = []
    assert fetch(sample.known, tmp_path, progress=lambda *facts: seen.append(facts)) == ()
    assert whole(sample, tmp_path)
    assert {name for _, _, name in seen} == {f"{file.name}.gz" for file in sample.known.files}


def test_tar(site: Site, tmp_path: Path) -> None:
    archive = tar_gz({f"bin/{name}": content for name, content in pictures().contents.items()})
    sample = pictures(
        Mirror(f"{site.url}/p.tar.gz", "tar.gz", hashlib.sha256(archive).hexdigest(), "bin/")
    )
    site.pages["/p.tar.gz"] = serving(archive)
    assert fetch(sample.known, tmp_path, progress=silent) == ()
    assert whole(sample, tmp_path)


def test_an_archive_with_a_wrong_checksum_is_not_opened(site: Site, tmp_path: Path) -> None:
    sample = pictures(Mirror(f"{site.url}/p.tar.gz", "tar.gz", "0" * 64, "bin/"))
    site.pages["/p.tar.gz"] = serving(
        tar_gz({f"bin/{name}": each for name, each in sample.contents.items()})
    )
    (failure,) = fetch(sample.known, tmp_path, progress=silent)
    assert f"a different archive: expected SHA-256 {'0' * 64}, found" in failure
    assert not list(tmp_path.iterdir())


def test_only_what_is_missing_or_damaged_is_fetched(site: Site, tmp_path: Path) -> None:
    sample = digits(serve(site, "a", digits()))
    sample.write(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"damaged")
    assert fetch(sample.known, tmp_path, progress=silent) == ()
    assert whole(sample, tmp_path)
    assert site.requests == ["/a/train-labels-idx1-ubyte.gz", "/a/t10k-labels-idx1-ubyte.gz"]


def wrong_content(sample: Sample) -> bytes:
    content = bytearray(sample.contents["train-images-idx3-ubyte"])
    content[500] ^= 1
    return gzip.compress(bytes(content))


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("absent", "HTTP 404"),
        ("page", "served a web page instead of the file"),
        ("cut", "stopped after 0 bytes: "),
        ("short", "served a gzip that can't be read: Compressed file ended"),
        ("garbled", "served a gzip that can't be read: Error -3"),
        ("wrong", "served a different train-images-idx3-ubyte: expected SHA-256"),
        ("stall", "stopped after 0 bytes: Read timed out"),
    ],
)
def test_the_next_mirror_serves_what_one_could_not(
    site: Site, tmp_path: Path, trouble: str, reason: str
) -> None:
    sample = digits(serve(site, "bad", digits()), serve(site, "good", digits()))
    good = gzip.compress(sample.contents["train-images-idx3-ubyte"])
    path = "/bad/train-images-idx3-ubyte.gz"
    if trouble == "absent":
        del site.pages[path]
    else:
        site.pages[path] = {
            "page": web_page(),
            "cut": hanging_up(good, 500),
            "short": serving(good[:-20]),
            "garbled": serving(good[:200] + bytes(200) + good[400:]),
            "wrong": serving(wrong_content(sample)),
            "stall": site.stalling(good, 500),
        }[trouble]
    (failure,) = fetch(
        sample.known, tmp_path, progress=silent, timeout=QUICK if trouble == "stall" else PATIENT
    )
    assert failure.startswith(f"{site.url}/bad/: {reason}")
    assert whole(sample, tmp_path)


def test_a_failed_download_leaves_nothing_in_the_cache(site: Site, tmp_path: Path) -> None:
    sample = digits(serve(site, "a", digits()))
    site.pages["/a/train-images-idx3-ubyte.gz"] = hanging_up(bytes(1000), 500)
    assert len(fetch(sample.known, tmp_path, progress=silent)) == 1
    assert not list(tmp_path.iterdir())


def test_an_interrupted_download_leaves_nothing_in_the_cache(site: Site, tmp_path: Path) -> None:
    def interrupt(done: int, total: int | None, name: str) -> None:
        if done:
            raise KeyboardInterrupt

    sample = digits(serve(site, "a", digits()))
    with pytest.raises(KeyboardInterrupt):
        fetch(sample.known, tmp_path, progress=interrupt)
    assert not list(tmp_path.iterdir())


def test_hosts_that_refuse_at_once_are_all_tried(site: Site, tmp_path: Path) -> None:
    refusing = [Mirror(f"http://127.0.0.1:9/{number}/") for number in range(6)]
    sample = digits(*refusing, serve(site, "a", digits()))
    failures = fetch(sample.known, tmp_path, progress=silent)
    assert [failure.split(": ")[0] for failure in failures] == [mirror.url for mirror in refusing]
    assert whole(sample, tmp_path)


def test_without_a_network_the_last_mirrors_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def times_out(*given: object, timeout: tuple[float, float], **named: object) -> None:
        time.sleep(timeout[0])
        raise Unreachable("no answer: timed out")

    monkeypatch.setattr(fetch_module, "download", times_out)
    sample = digits(*(Mirror(f"http://host{number}.invalid/") for number in range(6)))
    failures = fetch(sample.known, tmp_path, progress=silent, timeout=(0.01, 1))
    assert failures[0].endswith("no answer: timed out")
    assert "not tried, since earlier mirrors could not be reached" in failures[-1]
    assert len(failures) == 6
