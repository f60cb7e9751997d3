from __future__ import annotations

import gzip
import hashlib
import time
from pathlib import Path

import pytest

from trainmark.data.fetch import Patience, fetch
from trainmark.data.mirrors import Mirror
from trainmark.data.progress import silent

from .archives import npz, tar_gz, zip_
from .samples import Sample, digits, pictures
from .site import Site, hanging_up, serving, serving_ranges, web_page

QUICK = Patience(connect=1, stall=0.3)


def serve(site: Site, folder: str, sample: Sample) -> Mirror:
    """Puts the files on the site as most mirrors have them."""
    for name, content in sample.contents.items():
        site.pages[f"/{folder}/{name}.gz"] = serving_ranges(gzip.compress(content, mtime=0))
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


def test_zip(site: Site, tmp_path: Path) -> None:
    sample = digits(Mirror(f"{site.url}/digits.zip", "zip"))
    site.pages["/digits.zip"] = serving(zip_(sample.contents))
    assert fetch(sample.known, tmp_path, progress=silent) == ()
    assert whole(sample, tmp_path)


def test_npz(site: Site, tmp_path: Path) -> None:
    archive = npz(digits())
    sample = digits(Mirror(f"{site.url}/digits.npz", "npz", hashlib.sha256(archive).hexdigest()))
    site.pages["/digits.npz"] = serving(archive)
    assert fetch(sample.known, tmp_path, progress=silent) == ()
    assert whole(sample, tmp_path)


def test_tar(site: Site, tmp_path: Path) -> None:
    archive = tar_gz({f"bin/{name}": content for name, content in pictures().contents.items()})
    sample = pictures(Mirror(f"{site.url}/p.tar.gz", "tar.gz", hashlib.sha256(archive).hexdigest(), "bin/"))
    site.pages["/p.tar.gz"] = serving(archive)
    assert fetch(sample.known, tmp_path, progress=silent) == ()
    assert whole(sample, tmp_path)


def test_an_archive_with_a_wrong_checksum_is_not_opened(site: Site, tmp_path: Path) -> None:
    sample = digits(Mirror(f"{site.url}/digits.npz", "npz", "0" * 64))
    site.pages["/digits.npz"] = serving(npz(sample))
    (failure,) = fetch(sample.known, tmp_path, progress=silent)
    assert f"another archive: expected SHA-256 {'0' * 64}, found" in failure
    assert not list(tmp_path.iterdir())


def test_only_what_is_missing_or_damaged_is_fetched(site: Site, tmp_path: Path) -> None:
    sample = digits(serve(site, "a", digits()))
    sample.write(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"damaged")
    assert fetch(sample.known, tmp_path, progress=silent) == ()
    assert whole(sample, tmp_path)
    assert [path for path, _ in site.requests] == ["/a/train-labels-idx1-ubyte.gz", "/a/t10k-labels-idx1-ubyte.gz"]


def wrong_content(sample: Sample) -> bytes:
    content = bytearray(sample.contents["train-images-idx3-ubyte"])
    content[500] ^= 1
    return gzip.compress(bytes(content))


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("absent", "HTTP 404"),
        ("page", "served a web page instead of the file"),
        ("cut", "hung up after 500 of"),
        ("short", "served a damaged file: the gzip file is cut off"),
        ("garbled", "served a damaged file: not a sound gzip file, found Error -3"),
        ("wrong", "served a damaged file: not the train-images-idx3-ubyte that is known, expected SHA-256"),
        ("stall", "sent only 500 bytes for 0.3 s"),
    ],
)
def test_the_next_mirror_serves_what_one_could_not(site: Site, tmp_path: Path, trouble: str, reason: str) -> None:
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
    (failure,) = fetch(sample.known, tmp_path, progress=silent, patience=QUICK)
    assert failure.startswith(f"{site.url}/bad/: {reason}")
    assert whole(sample, tmp_path)


def test_what_one_mirror_began_is_continued_there_and_then(site: Site, tmp_path: Path) -> None:
    sample = digits(serve(site, "a", digits()))
    path = "/a/train-images-idx3-ubyte.gz"
    honest = site.pages[path]
    site.pages[path] = hanging_up(gzip.compress(sample.contents["train-images-idx3-ubyte"], mtime=0), 500)
    assert len(fetch(sample.known, tmp_path, progress=silent)) == 1
    (part,) = tmp_path.glob("*.part")
    assert part.stat().st_size == 500

    site.pages[path] = honest
    site.requests.clear()
    assert fetch(sample.known, tmp_path, progress=silent) == ()
    assert site.requests[0] == (path, "bytes=500-")
    assert whole(sample, tmp_path)


def test_a_part_of_another_mirror_is_not_continued(site: Site, tmp_path: Path) -> None:
    first = digits(serve(site, "a", digits()))
    site.pages["/a/train-images-idx3-ubyte.gz"] = hanging_up(bytes(1000), 500)
    fetch(first.known, tmp_path, progress=silent)
    site.requests.clear()
    second = digits(serve(site, "b", digits()))
    assert fetch(second.known, tmp_path, progress=silent) == ()
    assert site.requests[0] == ("/b/train-images-idx3-ubyte.gz", None)
    assert whole(second, tmp_path)


def test_a_part_that_was_wrong_is_fetched_anew(site: Site, tmp_path: Path) -> None:
    sample = digits(serve(site, "a", digits()))
    path = "/a/train-images-idx3-ubyte.gz"
    honest = site.pages[path]
    site.pages[path] = hanging_up(bytes(1000), 500)
    fetch(sample.known, tmp_path, progress=silent)
    site.pages[path] = honest
    site.requests.clear()
    assert fetch(sample.known, tmp_path, progress=silent) == ()
    assert [asked for asked, _ in site.requests][:2] == [path, path]
    assert [range_ for _, range_ in site.requests][:2] == ["bytes=500-", None]
    assert whole(sample, tmp_path)


def test_mirrors_that_do_not_answer_cost_one_deadline_together(site: Site, tmp_path: Path) -> None:
    # 192.0.2.0/24 is reserved for documentation (RFC 5737): nobody is there.
    nowhere = [Mirror(f"http://192.0.2.{number}/") for number in range(1, 7)]
    sample = digits(*nowhere, serve(site, "a", digits()))
    begin = time.monotonic()
    failures = fetch(sample.known, tmp_path, progress=silent, patience=Patience(connect=0.5))
    assert time.monotonic() - begin < 2
    assert [failure.split(": ")[0] for failure in failures] == [mirror.url for mirror in nowhere]
    assert whole(sample, tmp_path)
