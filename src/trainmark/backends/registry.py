"""The backends by name; none is imported before it is loaded.

Built-in backends are listed here, because trainmark need not be installed in the interpreter that
trains. Plug-ins are found by the entry point group ``trainmark.backends`` of that interpreter.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from trainmark.errors import NotInstalled, TrainmarkError, UnknownName, Unsupported

if TYPE_CHECKING:
    from trainmark.backends.base import Backend, Capabilities

ENTRY_POINT_GROUP = "trainmark.backends"
"""Group of the entry points with which plug-ins register their backends."""
SYNONYMS = {"pytorch": "torch", "tensorflow": "keras", "tf": "keras"}
"""Other names of backends; Keras uses TensorFlow unless another engine is named."""
UPDATE = "Update it, or change it to match trainmark.backends.base"
"""The start of the advice about a plug-in for another version of trainmark."""


@dataclass(frozen=True)
class Entry:
    """The module of a backend and its requirements.

    Args:
        target: ``module:class``.
        frameworks: the top-level modules that must be importable; the first gives the version.
        install: the commands that install it.
        install_gpu: the command that installs its GPU build, if different.
        plugin: the distribution of a plug-in; empty for a built-in backend.
    """

    name: str
    target: str
    frameworks: tuple[str, ...]
    install: str
    install_gpu: str = ""
    plugin: str = ""

    @property
    def installed(self) -> bool:
        """Whether this interpreter can find the frameworks, without importing them."""
        return all(importlib.util.find_spec(framework) is not None for framework in self.frameworks)

    @property
    def needs(self) -> str:
        """The frameworks, as text."""
        return " and ".join(self.frameworks)


def _built_in(name: str, backend: str, *frameworks: str, install_gpu: str = "") -> Entry:
    module = f"trainmark.backends.{name.partition(':')[0]}.backend"
    return Entry(
        name, f"{module}:{backend}", frameworks, f"pip install {' '.join(frameworks)}", install_gpu
    )


# Best first: `run` without --backend takes the first that is installed.
_BUILT_IN = (
    _built_in("torch", "TorchBackend", "torch", install_gpu="pip install --force-reinstall torch"),
    _built_in("jax", "JaxBackend", "jax", install_gpu="pip install 'jax[cuda13]'"),
    _built_in(
        "keras",
        "KerasOnTensorFlow",
        "keras",
        "tensorflow",
        install_gpu="pip install 'tensorflow[and-cuda]'",
    ),
    _built_in(
        "keras:torch",
        "KerasOnTorch",
        "keras",
        "torch",
        install_gpu="pip install --force-reinstall torch",
    ),
    _built_in("keras:jax", "KerasOnJax", "keras", "jax", install_gpu="pip install 'jax[cuda13]'"),
    _built_in("numpy", "NumpyBackend", "numpy"),
)

WELL_KNOWN_PLUGINS = {
    "mxnet": "MXNet is a plug-in with its own environment: python3.11 -m venv mxnet-env && "
    "mxnet-env/bin/pip install ./plugins/trainmark-mxnet (in a clone of trainmark), then "
    "--backend mxnet@mxnet --python mxnet=mxnet-env/bin/python"
}
"""How to install documented plug-ins that are not installed."""


def entries() -> dict[str, Entry]:
    """Return every backend known to this interpreter, best first, plug-ins last."""
    # This is slow to import, and not needed for a built-in backend.
    from importlib.metadata import entry_points

    known = {entry.name: entry for entry in _BUILT_IN}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        distribution = point.dist.name if point.dist else point.name
        package = point.module.partition(".")[0]
        entry = Entry(
            point.name, point.value, (package,), f"pip install {distribution}", plugin=distribution
        )
        known.setdefault(point.name, entry)
    return known


def find(name: str) -> Entry:
    """Return the backend ``name``; raises :class:`~trainmark.errors.UnknownName`."""
    built_in = next((entry for entry in _BUILT_IN if entry.name == name), None)
    if built_in is not None:
        return built_in
    known = entries()
    if name not in known:
        raise UnknownName("backend", name, known, otherwise=WELL_KNOWN_PLUGINS.get(name, ""))
    return known[name]


def recipe(backend: str) -> str:
    """Return the path of this repository's recipe for ``fast`` of ``backend``.

    The result is empty if there is none.
    """
    written = backend in {entry.name for entry in _BUILT_IN} - {"numpy"}
    return f"examples/recipes/{backend.replace(':', '_')}_fast.py" if written else ""


def load(name: str) -> Backend:
    """Import the framework of ``name`` and return its backend.

    Raises:
        UnknownName: there is no such backend.
        NotInstalled: its framework can't be found in this interpreter.
        Unsupported: the plug-in was written for another version of trainmark.
    """
    entry = find(name)
    if not entry.installed:
        raise NotInstalled(
            f"the backend {name!r} needs {entry.needs}, which is not installed", fix=entry.install
        )
    module, _, attribute = entry.target.partition(":")
    try:
        return cast("Backend", getattr(importlib.import_module(module), attribute)())
    except ImportError as error:
        if not entry.plugin:
            raise
        raise _broken_plugin(entry, error) from error


def capabilities(name: str, backend: Backend) -> Capabilities:
    """Return what the loaded ``backend`` supports.

    Raises:
        Unsupported: the plug-in's ``Capabilities`` are from another version of trainmark.
    """
    try:
        return backend.capabilities()
    except TypeError as error:
        entry = find(name)
        if not entry.plugin or "Capabilities" not in str(error):
            raise
        raise _outdated(entry, error) from error


def _broken_plugin(entry: Entry, error: ImportError) -> TrainmarkError:
    """Return why the import failed.

    Either trainmark lacks what the plug-in imports, or the plug-in's framework is missing.
    """
    if (error.name or "").partition(".")[0] != "trainmark":
        return NotInstalled(
            f"the plug-in {entry.plugin!r} can't be imported",
            found=str(error),
            fix=f"Install what it needs: {entry.install}",
        )
    return _outdated(entry, error)


def _outdated(entry: Entry, error: Exception) -> Unsupported:
    return Unsupported(
        f"the plug-in {entry.plugin!r} was written for another version of trainmark",
        found=str(error),
        fix=f"{UPDATE}.",
    )
