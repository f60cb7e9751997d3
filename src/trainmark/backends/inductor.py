"""What ``torch.compile`` requires besides PyTorch, for PyTorch and for Keras on PyTorch."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

from trainmark.errors import NotInstalled

CACHE_VARIABLE = "TRAINMARK_COMPILE_CACHE"
"""Names the folder in which all processes of one command keep what they compile."""
_TORCH_CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


def share_cache() -> None:
    """Let PyTorch keep compiled code in the command's folder.

    The processes of a command then compile a step only once.

    PyTorch keeps its graphs and Triton's kernels below this folder, and looks for them there by
    default since 2.4. PyTorch's own default is one folder for each user, so that compile times
    depend on earlier commands. A folder that the user has set stays. The worker sets the variable,
    not the parent, so that a user's script keeps its usual cache.
    """
    folder = os.environ.get(CACHE_VARIABLE)
    if folder:
        os.environ.setdefault(_TORCH_CACHE_VARIABLE, folder)


def require_compiler(device: str) -> None:
    """Raise NotInstalled if the compiler that ``torch.compile`` calls is missing."""
    if device == "cpu":
        name = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
        needed = f"the C++ compiler {name!r} on PATH"
        found = shutil.which(name) is not None
    elif device == "mps":
        return  # macOS includes Metal's
    else:
        needed = "the package triton, and a C compiler on PATH for it"
        compiler = shutil.which(os.environ.get("CC", "gcc")) or shutil.which("clang")
        found = importlib.util.find_spec("triton") is not None and compiler is not None
    if not found:
        raise NotInstalled(
            f"torch.compile has no compiler for {device}",
            expected=needed,
            found="none",
            fix="Install it (CXX names another C++ compiler), or use --style idiomatic or fast. "
            "trainmark's container "
            "image has no compiler and no headers for one (docs/containers.md).",
        )
