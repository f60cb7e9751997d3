from __future__ import annotations

import math

import pytest

from trainmark.data import catalog, cifar10
from trainmark.data.catalog import CATALOG, KnownDataset, KnownFile
from trainmark.errors import UnknownName

ALL = pytest.mark.parametrize("known", CATALOG.values(), ids=CATALOG)


def shape(known: KnownDataset, file: KnownFile) -> tuple[int, ...]:
    return {
        "images": (file.examples, *known.image_shape[:2]),
        "labels": (file.examples,),
        "tokens": (file.examples,),
        "records": (file.examples, cifar10.RECORD),
        "text": (file.examples,),
    }[file.holds]


@ALL
def test_sizes_follow_from_shapes(known: KnownDataset) -> None:
    for file in (*known.files, *known.parts):
        if known.format == "random":  # labels and tokens have two bytes
            assert file.size == file.examples * (
                math.prod(known.image_shape) if file.holds == "images" else 2
            ), file.name
            continue
        header = 4 * (1 + len(shape(known, file))) if known.format == "idx" else 0
        assert file.size == header + math.prod(shape(known, file)), file.name


@ALL
def test_digests_are_sha256_and_differ(known: KnownDataset) -> None:
    digests = [file.sha256 for file in (*known.files, *known.parts)]
    assert all(len(bytes.fromhex(digest)) == 32 for digest in digests)
    assert len(set(digests)) == len(digests)


def test_examples() -> None:
    assert {
        name: (known.examples("train"), known.examples("test")) for name, known in CATALOG.items()
    } == {
        "mnist": (60_000, 10_000),
        "cifar10": (50_000, 10_000),
        "synthetic-digits": (60_000, 10_000),
        "shakespeare": (1_003_854, 111_540),
        "random-images": (512, 64),
        "random-tokens": (1_048_576, 65_536),
    }


@ALL
def test_mirrors_never_serve_pickles(known: KnownDataset) -> None:
    for mirror in known.mirrors:
        assert "pkl" not in mirror.url and "python" not in mirror.url


@ALL
def test_a_tar_is_opened_only_when_its_checksum_is_known(known: KnownDataset) -> None:
    # Its members come one after the other, so anything in front of the wanted ones would have to be
    # decompressed.
    assert all(mirror.sha256 for mirror in known.mirrors if mirror.packaging == "tar.gz")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean mnist"):
        catalog.find("mnits")
