"""Where to download datasets, in the order of trying.

These are mirrors of well-known loaders (torchvision, tensorflow-datasets, MLDatasets.jl, Flux) that serve the original
files. Those of Python pickles are left out, since unpickling runs code from the server.

No mirror is trusted: the SHA-256 of the uncompressed files decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Packaging: TypeAlias = Literal["gzip", "tar.gz"]


@dataclass(frozen=True)
class Mirror:
    """One place that serves one dataset.

    Attributes:
        url: of the archive; for ``gzip`` the folder, to which ``NAME.gz`` is added.
        packaging: how the files are wrapped.
        sha256: of the archive, checked before it is opened; None when only its content is known.
        folder: the folder inside the archive that holds the files, ending in ``/``; empty for none.
    """

    url: str
    packaging: Packaging = "gzip"
    sha256: str | None = None
    folder: str = ""


MNIST: tuple[Mirror, ...] = (
    Mirror("https://ossci-datasets.s3.amazonaws.com/mnist/"),  # torchvision, MLDatasets.jl
    Mirror("https://storage.googleapis.com/cvdf-datasets/mnist/"),  # tensorflow-datasets
    Mirror("http://yann.lecun.com/exdb/mnist/"),  # the origin; often refuses
    Mirror("https://cache.julialang.org/http://yann.lecun.com/exdb/mnist/"),  # Flux 0.8
)

_CIFAR10_TAR = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
_CIFAR10_FOLDER = "cifar-10-batches-bin/"

CIFAR10: tuple[Mirror, ...] = (
    Mirror("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "tar.gz", _CIFAR10_TAR, _CIFAR10_FOLDER),
    Mirror("http://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "tar.gz", _CIFAR10_TAR, _CIFAR10_FOLDER),
)
