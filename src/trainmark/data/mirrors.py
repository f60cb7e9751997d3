"""Where to download datasets, in the order of trying.

These are the mirrors of well-known loaders (torchvision, Keras, tensorflow-datasets, MLDatasets.jl, Flux, MXNet.jl),
without those that serve Python pickles (``mnist.pkl.gz`` of Keras 1, ``cifar-10-python.tar.gz``): unpickling runs
code from the server. The others have the same images.

No mirror is trusted: the SHA-256 of the uncompressed files decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Packaging: TypeAlias = Literal["gzip", "npz", "zip", "tar.gz"]


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


_KERAS_NPZ = "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"

MNIST: tuple[Mirror, ...] = (
    Mirror("https://ossci-datasets.s3.amazonaws.com/mnist/"),  # torchvision, MLDatasets.jl
    Mirror("https://storage.googleapis.com/cvdf-datasets/mnist/"),  # tensorflow-datasets
    Mirror("https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz", "npz", _KERAS_NPZ),  # Keras
    Mirror("https://s3.amazonaws.com/img-datasets/mnist.npz", "npz", _KERAS_NPZ),  # Keras 2.0.0
    Mirror("http://yann.lecun.com/exdb/mnist/"),  # the origin; often refuses
    Mirror("https://cache.julialang.org/http://yann.lecun.com/exdb/mnist/"),  # Flux 0.8
    Mirror("http://data.dmlc.ml/mxnet/data/mnist.zip", "zip"),  # MXNet.jl 0.1
    Mirror("http://webdocs.cs.ualberta.ca/~bx3/data/mnist.zip", "zip"),  # MXNet.jl 0.0
)

_CIFAR10_TAR = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
_CIFAR10_FOLDER = "cifar-10-batches-bin/"

CIFAR10: tuple[Mirror, ...] = (
    Mirror("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "tar.gz", _CIFAR10_TAR, _CIFAR10_FOLDER),
    Mirror("http://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "tar.gz", _CIFAR10_TAR, _CIFAR10_FOLDER),
)
