"""trainmark: is the GPU worth it, does it learn the same thing, and if it is slow, why?

This file imports nothing: the measured process shares it, and there only the standard library,
NumPy and one framework may be loaded. ``run``, ``load_records`` and ``compare`` come from
:mod:`trainmark.api` on use.
"""

__all__ = ["__version__", "compare", "load_records", "run"]


def __getattr__(name):  # type: ignore[no-untyped-def]
    # An import statement would make the package's root depend on the modules that depend on it.
    import importlib

    if name == "__version__":
        return importlib.import_module("trainmark.version").version()
    if name not in __all__:
        raise AttributeError(f"module 'trainmark' has no attribute {name!r}")
    return getattr(importlib.import_module("trainmark.api"), name)


def __dir__():  # type: ignore[no-untyped-def]
    return sorted({*globals(), *__all__})
