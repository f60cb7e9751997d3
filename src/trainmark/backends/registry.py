"""The backends by name, none imported before it is asked for.

Built-in ones are named here, since the measured interpreter may have no installed trainmark; others are found by the
entry point group ``trainmark.backends``, in whichever interpreter trains.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, cast

from trainmark.errors import NotInstalled, UnknownName

if TYPE_CHECKING:
    from trainmark.backends.base import Backend

ENTRY_POINT_GROUP = "trainmark.backends"


@dataclass(frozen=True)
class Entry:
    """Where a backend is and what it needs.

    Args:
        target: ``module:class``.
        frameworks: the top-level modules that must be importable; the first gives the version.
        install: the commands that install it.
        hidden: not listed and never chosen by itself.
        install_gpu: the command that installs its build for NVIDIA GPUs, where that is another.
    """

    name: str
    target: str
    frameworks: tuple[str, ...]
    install: str
    hidden: bool = False
    install_gpu: str = ""

    @property
    def installed(self) -> bool:
        """Whether this interpreter can find the frameworks, without importing them."""
        return all(importlib.util.find_spec(framework) is not None for framework in self.frameworks)

    @property
    def needs(self) -> str:
        """The frameworks, for people."""
        return " and ".join(self.frameworks)


_KERAS = "pip install keras"

# Best first: `run` without --backend takes the first that is installed.
_BUILT_IN = (
    Entry(
        "torch",
        "trainmark.backends.torch.backend:TorchBackend",
        ("torch",),
        "pip install torch",
        install_gpu="pip install --force-reinstall torch",
    ),
    Entry(
        "jax",
        "trainmark.backends.jax.backend:JaxBackend",
        ("jax",),
        "pip install jax",
        install_gpu="pip install 'jax[cuda13]'",
    ),
    Entry(
        "keras",
        "trainmark.backends.keras.backend:KerasOnTensorFlow",
        ("keras", "tensorflow"),
        f"{_KERAS} tensorflow",
        install_gpu="pip install 'tensorflow[and-cuda]'",
    ),
    Entry("keras:torch", "trainmark.backends.keras.backend:KerasOnTorch", ("keras", "torch"), f"{_KERAS} torch"),
    Entry("keras:jax", "trainmark.backends.keras.backend:KerasOnJax", ("keras", "jax"), f"{_KERAS} jax"),
    Entry(
        "mxnet",
        "trainmark.backends.mxnet.backend:MxnetBackend",
        ("mxnet",),
        "python3.11 -m venv mxnet-env && mxnet-env/bin/pip install mxnet==1.9.1 numpy==1.23.5, then "
        "--backend mxnet@mxnet --python mxnet=mxnet-env/bin/python",
    ),
    Entry("numpy", "trainmark.backends.numpy.backend:NumpyBackend", ("numpy",), "pip install numpy"),
    Entry("fake", "trainmark.backends.fake:FakeBackend", ("numpy",), "pip install numpy", hidden=True),
)


def entries() -> dict[str, Entry]:
    """Every backend known to this interpreter, best first, plug-ins last."""
    known = {entry.name: entry for entry in _BUILT_IN}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        module = point.value.partition(":")[0]
        distribution = point.dist.name if point.dist else point.name
        plugin = Entry(point.name, point.value, (module.partition(".")[0],), f"pip install {distribution}")
        known.setdefault(point.name, plugin)
    return known


def find(name: str) -> Entry:
    """The backend called ``name``; raises :class:`~trainmark.errors.UnknownName`."""
    known = entries()
    if name not in known:
        raise UnknownName("backend", name, [entry.name for entry in known.values() if not entry.hidden])
    return known[name]


def load(name: str) -> Backend:
    """Import the framework of ``name`` and return its backend.

    Raises:
        UnknownName: no such backend.
        NotInstalled: its framework can't be found in this interpreter.
    """
    entry = find(name)
    if not entry.installed:
        raise NotInstalled(f"the backend {name!r} needs {entry.needs}, which is not installed", fix=entry.install)
    module, _, attribute = entry.target.partition(":")
    return cast("Backend", getattr(importlib.import_module(module), attribute)())
