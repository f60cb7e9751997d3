"""The known datasets, with the checksum of every file."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trainmark.errors import UnknownName

SplitName: TypeAlias = Literal["train", "test"]
Format: TypeAlias = Literal["idx", "cifar10", "text", "random"]
Packaging: TypeAlias = Literal["gzip", "tar.gz", "plain"]

TRAINING_SHARE = 0.9
"""Share of a text, from its start, that is the training split."""


@dataclass(frozen=True)
class KnownFile:
    """One file of a dataset, or one array that is generated in memory.

    Attributes:
        name: its name on disk, uncompressed. ``NAME.gz`` is also accepted.
        split: which split it contains; ``train`` for a text, which contains both.
        holds: images, their labels, records of both, tokens, or the characters of a text.
        examples: number of examples, of tokens, or of characters.
        size: size in bytes, uncompressed.
        sha256: checksum of the uncompressed bytes, since the same content can be compressed in many
            ways.
        part_of: the file that this is only the first part of; None for a whole file.
    """

    name: str
    split: SplitName
    holds: Literal["images", "labels", "records", "tokens", "text"]
    examples: int
    size: int
    sha256: str
    part_of: str | None = None

    def count(self, split: SplitName) -> int:
        """Return how many examples of ``split`` it contains; tokens, for a text."""
        if self.holds == "text":
            first = int(TRAINING_SHARE * self.examples)
            return first if split == "train" else self.examples - first
        return self.examples if self.split == split and self.holds != "labels" else 0


@dataclass(frozen=True)
class Mirror:
    """A server of one dataset.

    No mirror is trusted: the SHA-256 of the uncompressed files is checked.

    Attributes:
        url: URL of the archive; for ``gzip`` and ``plain`` of the folder, to which ``NAME.gz`` or
            ``NAME`` is added.
        packaging: how the files are packaged.
        sha256: checksum of the archive, checked before it is opened; None if only its content is
            known.
        folder: the folder inside the archive that contains the files, ending in ``/``; empty for
            none.
    """

    url: str
    packaging: Packaging = "gzip"
    sha256: str | None = None
    folder: str = ""


@dataclass(frozen=True)
class KnownDataset:
    """A dataset that can be selected by name.

    Attributes:
        name: the name.
        title: one-line description for a list.
        format: format of its files.
        image_shape: height, width, channels; empty for a text.
        files: all files, in reading order.
        layouts: relative paths where the files may be in a folder, the most likely first; empty for
            a dataset that each measured process generates in memory.
        parts: files that may replace one of ``files``; the dataset is then incomplete.
        splittable: whether a subset of the training files is a usable (partial) dataset.
        mirrors: where it can be downloaded, in order of preference; empty for a generated dataset.
        classes: names of the labels from 0, or of the tokens of a text: its vocabulary.
    """

    name: str
    title: str
    format: Format
    image_shape: tuple[int, int, int] | tuple[()]
    files: tuple[KnownFile, ...]
    layouts: tuple[str, ...]
    parts: tuple[KnownFile, ...] = ()
    splittable: bool = False
    mirrors: tuple[Mirror, ...] = ()
    classes: Sequence[str] | range = tuple("0123456789")

    @property
    def drawn(self) -> bool:
        """Whether it is generated rather than downloaded."""
        return not self.mirrors

    @property
    def is_text(self) -> bool:
        """Whether it consists of tokens rather than images."""
        return not self.image_shape

    def class_names(self, classes: int) -> tuple[str, ...]:
        """Return the names of a network's outputs, which can be more than the labels."""
        names = map(str, self.classes[:classes])
        return (*names, *(f"class {number}" for number in range(len(self.classes), classes)))

    def examples(self, split: SplitName) -> int:
        """Return the number of examples in the whole split; of tokens, for a text."""
        return sum(file.count(split) for file in self.files)


def _idx_files(*digests: str) -> tuple[KnownFile, ...]:
    """Return the four files of MNIST, which ``synthetic-digits`` also has."""
    train_images, train_labels, test_images, test_labels = digests
    return (
        KnownFile("train-images-idx3-ubyte", "train", "images", 60_000, 47_040_016, train_images),
        KnownFile("train-labels-idx1-ubyte", "train", "labels", 60_000, 60_008, train_labels),
        KnownFile("t10k-images-idx3-ubyte", "test", "images", 10_000, 7_840_016, test_images),
        KnownFile("t10k-labels-idx1-ubyte", "test", "labels", 10_000, 10_008, test_labels),
    )


def _cifar10_file(
    name: str, split: SplitName, sha256: str, examples: int = 10_000, part_of: str = ""
) -> KnownFile:
    return KnownFile(
        f"{name}.bin", split, "records", examples, 3_073 * examples, sha256, part_of or None
    )


def _array(
    split: SplitName,
    holds: Literal["images", "labels", "tokens"],
    examples: int,
    bytes_each: int,
    sha256: str,
) -> KnownFile:
    """Return an array that is generated in memory."""
    return KnownFile(f"{split}-{holds}", split, holds, examples, bytes_each * examples, sha256)


# The mirrors are those of well-known loaders that serve the original files. Mirrors of Python
# pickles are excluded, since unpickling runs code from the server.
MNIST = KnownDataset(
    name="mnist",
    title="MNIST: handwritten digits, 28×28 grey",
    format="idx",
    image_shape=(28, 28, 1),
    files=_idx_files(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    layouts=("mnist", "MNIST/raw", "."),
    mirrors=(
        Mirror("https://ossci-datasets.s3.amazonaws.com/mnist/"),  # torchvision, MLDatasets.jl
        Mirror("https://storage.googleapis.com/cvdf-datasets/mnist/"),  # tensorflow-datasets
        Mirror("http://yann.lecun.com/exdb/mnist/"),  # the original; often refuses
        Mirror("https://cache.julialang.org/http://yann.lecun.com/exdb/mnist/"),  # Flux 0.8
    ),
)

CIFAR10 = KnownDataset(
    name="cifar10",
    title="CIFAR-10: photographs of ten kinds of things, 32×32 colour",
    format="cifar10",
    image_shape=(32, 32, 3),
    files=(
        _cifar10_file(
            "data_batch_1",
            "train",
            "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        ),
        _cifar10_file(
            "data_batch_2",
            "train",
            "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        ),
        _cifar10_file(
            "data_batch_3",
            "train",
            "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        ),
        _cifar10_file(
            "data_batch_4",
            "train",
            "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        ),
        _cifar10_file(
            "data_batch_5",
            "train",
            "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        ),
        _cifar10_file(
            "test_batch", "test", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"
        ),
    ),
    layouts=("cifar10/cifar-10-batches-bin", "cifar-10-batches-bin", "."),
    parts=(
        _cifar10_file(
            "test_batch_first1000",
            "test",
            "8314c96d7cd65618193bab23acdd5d4c4af15bf6dd00a1781d55beedf3be1ef5",
            examples=1_000,
            part_of="test_batch.bin",
        ),
    ),
    splittable=True,
    mirrors=tuple(
        Mirror(
            f"{scheme}://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "tar.gz",
            sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            folder="cifar-10-batches-bin/",
        )
        for scheme in ("https", "http")
    ),
    classes=(
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ),
)

# Every machine generates the same bytes, so their digests are known. A cached copy of an older
# generator counts as damaged and is generated again. There is only one layout: the files are named
# like MNIST's, so a folder of MNIST would look like damaged synthetic digits.
SYNTHETIC_DIGITS = KnownDataset(
    name="synthetic-digits",
    title="Synthetic digits, 28×28 grey: generated, needs no download",
    format="idx",
    image_shape=(28, 28, 1),
    files=_idx_files(
        "9e7549ca6940c3048641d807c808b9d023770ef0aa0b68dc313a9dd798aad5c7",
        "e30ed9d9b152fe682b8c253a8615e20012cc3535adcfe5e7cac0cccc865b58d6",
        "d52343b447669d6dae2c0ef53b10a1996184fbeb83282c567e496841fea306a7",
        "0ce8d1b9e908b5b6fb8bc3cb29092b48284cb5094b6e23e19241e9580ad74845",
    ),
    layouts=("synthetic-digits",),
)

SHAKESPEARE = KnownDataset(
    name="shakespeare",
    title="Tiny Shakespeare: text, one token per character",
    format="text",
    image_shape=(),
    files=(
        KnownFile(
            "input.txt",
            "train",
            "text",
            1_115_394,
            1_115_394,
            "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
        ),
    ),
    layouts=("shakespeare", "."),
    mirrors=(
        Mirror(
            "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/",
            "plain",
        ),
    ),
    classes="\n !$&',-.3:;?" + string.ascii_uppercase + string.ascii_lowercase,
)

RANDOM_IMAGES = KnownDataset(
    name="random-images",
    title="Random images, 224×224 colour, with random labels",
    format="random",
    image_shape=(224, 224, 3),
    files=(
        _array(
            "train",
            "images",
            512,
            224 * 224 * 3,
            "b67806ec12fdab006d8da9d59b2ea8d6a5e3b83af3967f6135cd06654d391661",
        ),
        _array(
            "train",
            "labels",
            512,
            2,
            "596e8133dbcbc15559798baadac45e71ce3bc8f88b7141805c1bea1b8f71018e",
        ),
        _array(
            "test",
            "images",
            64,
            224 * 224 * 3,
            "bd600248f02ddd69bd86a09ccbd4375a79950379bfe2b56fd820bfb0c1162834",
        ),
        _array(
            "test",
            "labels",
            64,
            2,
            "75be1b692c58a41f56aa029e371365cbc770033891c1862e373e414f47198e5f",
        ),
    ),
    layouts=(),
    classes=range(1_000),
)

RANDOM_TOKENS = KnownDataset(
    name="random-tokens",
    title="Random tokens from a vocabulary of 50,304",
    format="random",
    image_shape=(),
    files=(
        _array(
            "train",
            "tokens",
            1 << 20,
            2,
            "7addacd2ce8e450121f5a0794e9b87cb568318f54b6418d531623ee71b3f82b3",
        ),
        _array(
            "test",
            "tokens",
            1 << 16,
            2,
            "446a2f5020685d14c6131b649a117b285ab267101d6097a73b73b1a07574e1e9",
        ),
    ),
    layouts=(),
    classes=range(50_304),
)

Catalog: TypeAlias = Mapping[str, KnownDataset]

CATALOG: Catalog = {
    known.name: known
    for known in (MNIST, CIFAR10, SYNTHETIC_DIGITS, SHAKESPEARE, RANDOM_IMAGES, RANDOM_TOKENS)
}


def find(name: str, catalog: Catalog = CATALOG) -> KnownDataset:
    """Return the dataset of that name; raises UnknownName if there is none."""
    if name not in catalog:
        raise UnknownName("dataset", name, catalog)
    return catalog[name]


def dataset_sha256(files: Iterable[KnownFile]) -> str:
    """Return the SHA-256 of the output of ``sha256sum`` for these files.

    The files are uncompressed, and in the catalogue's order.
    """
    listing = "".join(f"{file.sha256}  {file.name}\n" for file in files)
    return hashlib.sha256(listing.encode()).hexdigest()
