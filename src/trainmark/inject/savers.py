"""The functions of libraries that open a file by compiled code, which Python does not see.

Each is given the path to which its argument leads. What is missing here is refused by the kernel,
which the script sees as a permission error.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from . import redirect
from .imports import after_import
from .overlay import Overlay

_put = setattr
_LARGEST_DATABASE = 64 << 20
"""Most bytes of a database that is copied when it is opened, since it may only be read."""


class Opener(NamedTuple):
    """A function that opens a file.

    Args:
        name: its name in its module, such as ``File.save``.
        position: of the path among its arguments.
        keyword: name of that argument.
        use: what it does with the file: ``saves``, ``updates``, ``reads``, or ``opens`` if the next
            argument is a mode as that of :func:`open`.
    """

    name: str
    position: int
    keyword: str
    use: str


OPENERS = {
    "torch": (
        Opener("save", 1, "f", "saves"),
        Opener("load", 0, "f", "reads"),
        Opener("jit.save", 1, "f", "saves"),
        Opener("jit.load", 0, "f", "reads"),
        Opener("_C.ScriptModule.save", 1, "filename", "saves"),
        Opener("_C.ScriptFunction.save", 1, "filename", "saves"),
        Opener("_C.PyTorchFileWriter", 0, "name", "saves"),
        Opener("_C.PyTorchFileReader", 0, "name", "reads"),
        Opener("from_file", 0, "filename", "updates"),
        Opener("UntypedStorage.from_file", 0, "filename", "updates"),
        Opener("_C._autograd._ProfilerResult.save", 1, "path", "saves"),
    ),
    "torch.distributed": (Opener("FileStore", 0, "file_name", "updates"),),
    "torch.distributed.rendezvous": (Opener("FileStore", 0, "file_name", "updates"),),
    "safetensors": (
        Opener("serialize_file", 1, "filename", "saves"),
        Opener("safe_open", 0, "filename", "reads"),
    ),
    "h5py.h5f": (
        Opener("create", 0, "name", "saves"),
        Opener("is_hdf5", 0, "name", "reads"),
    ),
    "tokenizers": (
        Opener("Tokenizer.save", 1, "path", "saves"),
        Opener("Tokenizer.from_file", 0, "path", "reads"),
    ),
    "pyarrow": (
        Opener("OSFile", 0, "path", "opens"),
        Opener("memory_map", 0, "path", "opens"),
        Opener("create_memory_map", 0, "path", "saves"),
    ),
    "pyarrow.csv": (
        Opener("write_csv", 1, "output_file", "saves"),
        Opener("read_csv", 0, "input_file", "reads"),
    ),
    "pyarrow.parquet.core": (
        Opener("ParquetWriter.__init__", 1, "where", "saves"),
        Opener("ParquetFile.__init__", 1, "source", "reads"),
        Opener("read_table", 0, "source", "reads"),
        Opener("read_metadata", 0, "where", "reads"),
        Opener("read_schema", 0, "where", "reads"),
    ),
    "pyarrow.feather": (
        Opener("write_feather", 1, "dest", "saves"),
        Opener("read_table", 0, "source", "reads"),
        Opener("read_feather", 0, "source", "reads"),
    ),
    "cv2": (
        Opener("imwrite", 0, "filename", "saves"),
        Opener("imread", 0, "filename", "reads"),
    ),
    "soundfile": (Opener("SoundFile.__init__", 1, "file", "opens"),),
    "transformers.tokenization_utils_base": (
        Opener("PreTrainedTokenizerBase.save_pretrained", 1, "save_directory", "saves"),
    ),
}
"""The functions of each module."""


def install(overlay: Overlay) -> None:
    """Replace these functions, each as soon as its module is imported."""
    for name in OPENERS:
        after_import(name, functools.partial(_replace_openers, name, overlay))
    after_import("h5py.h5f", functools.partial(_replace_hdf5, overlay))
    for name in ("sqlite3.dbapi2", "sqlite3"):
        after_import(name, functools.partial(_replace_sqlite, overlay))
    after_import("shutil", functools.partial(redirect.replace_rmtree, overlay))


def _replace_openers(name: str, overlay: Overlay, module: Any) -> None:
    """Replace the functions of :data:`OPENERS` in a module; older versions lack some."""
    for opener in OPENERS[name]:
        *path, last = opener.name.split(".")
        owner = module
        for part in path:
            owner = getattr(owner, part, None)
        if hasattr(owner, last):
            _put(owner, last, redirected(getattr(owner, last), opener, overlay))


def redirected(real: Any, opener: Opener, overlay: Overlay) -> Any:
    """Return ``real``, a function or a class, with the path that its use of the file needs."""

    def led(args: tuple[Any, ...], more: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        lead = _leads(opener, overlay, args, more)
        if len(args) > opener.position:
            path = lead(args[opener.position])
            return (*args[: opener.position], path, *args[opener.position + 1 :]), more
        if opener.keyword in more:
            return args, {**more, opener.keyword: lead(more[opener.keyword])}
        return args, more

    if isinstance(real, type):
        try:
            return _subclass(real, led)
        except TypeError:  # it can't be subclassed
            pass

    @functools.wraps(real)
    def opens(*args: Any, **more: Any) -> Any:
        args, more = led(args, more)
        return real(*args, **more)

    return opens


def _leads(
    opener: Opener, overlay: Overlay, args: tuple[Any, ...], more: dict[str, Any]
) -> Callable[[Any], Any]:
    """Return what leads a path to where this call needs it."""
    use = opener.use
    if use == "opens":
        after = args[opener.position + 1 : opener.position + 2]
        mode = str(more.get("mode", after[0] if after else "r"))
        use = "reads" if "r" in mode and "+" not in mode else "saves" if "w" in mode else "updates"
    uses = {"saves": overlay.saving, "updates": overlay.updating, "reads": overlay.reading}
    return uses[use]


def _subclass(real: type[Any], led: Callable[..., Any]) -> type[Any]:
    """Return a class whose objects are those of ``real`` for another path."""

    class Redirected(real):  # type: ignore[misc]
        def __new__(cls, *args: Any, **more: Any) -> Any:
            args, more = led(args, more)
            return real.__new__(cls, *args, **more)

        def __init__(self, *args: Any, **more: Any) -> None:
            if real.__init__ is not object.__init__:
                args, more = led(args, more)
                real.__init__(self, *args, **more)

    Redirected.__name__ = real.__name__
    Redirected.__qualname__ = real.__qualname__
    Redirected.__module__ = real.__module__
    Redirected.__doc__ = real.__doc__
    return Redirected


def _replace_hdf5(overlay: Overlay, module: Any) -> None:
    real = module.open

    @functools.wraps(real)
    def opens(name: Any, flags: Any = module.ACC_RDWR, *args: Any, **more: Any) -> Any:
        lead = overlay.reading if flags == module.ACC_RDONLY else overlay.updating
        return real(lead(name), flags, *args, **more)

    module.open = opens


def _replace_sqlite(overlay: Overlay, module: Any) -> None:
    """Let a script change a database; one that is too large to copy can only be read."""
    from urllib.parse import quote  # it takes milliseconds, and few scripts use a database

    real = module.connect

    @functools.wraps(real)
    def connect(database: Any, *args: Any, **more: Any) -> Any:
        path, query = _of_uri(database) if more.get("uri") else (os.fsdecode(database), "")
        if path in ("", ":memory:") or "mode=memory" in query:
            return real(database, *args, **more)
        if overlay.may_copy(path, _LARGEST_DATABASE):
            path = _copy_of_database(overlay, path)
        else:
            path = overlay.reading(path)
            query = "mode=ro"
        if query:
            return real(f"file:{quote(os.fsencode(path))}?{query}", *args, **{**more, "uri": True})
        more.pop("uri", None)
        return real(path, *args, **more)

    if not hasattr(real, "__wrapped__"):
        module.connect = connect


def _of_uri(database: Any) -> tuple[str, str]:
    """Return the path and the query of an address of SQLite, or of a path instead of it."""
    from urllib.parse import unquote

    name = os.fsdecode(database)
    if not name.startswith("file:"):
        return name, ""
    name, _, _ = name[len("file:") :].partition("#")
    path, _, query = name.partition("?")
    if path.startswith("//"):
        path = path[path.index("/", 2) :]
    return unquote(path, errors="surrogateescape"), query


def _copy_of_database(overlay: Overlay, path: str) -> str:
    """Return where the database of this path is changed, with its changes that are in a log."""
    place: str = overlay.writing(path)
    if not os.path.exists(place):
        for log in ("-wal", "-journal"):
            overlay.updating(path + log)
        overlay.updating(path)
    return place
