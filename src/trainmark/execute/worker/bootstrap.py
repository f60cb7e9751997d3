"""Entry point of the measured interpreter.

It makes trainmark importable, and nothing else of the parent's.

Any Python from 3.10 runs it as a file, with or without trainmark installed. The parent's
``site-packages`` must not be on the path, or its NumPy would be measured instead of the child's.
"""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def adopt(package: Path) -> None:
    """Import the package in this folder as ``trainmark``."""
    spec = spec_from_file_location(
        "trainmark", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package in {package}")
    module = module_from_spec(spec)
    sys.modules["trainmark"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    # The Python that the user named runs this file alone
    if sys.version_info < (3, 10):  # noqa: UP036
        sys.exit(
            f"expected Python 3.10 or newer, found {sys.version.split()[0]} at {sys.executable}"
        )
    this_file = Path(__file__).resolve()
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != this_file.parent]
    adopt(this_file.parents[2])

    from trainmark.execute.worker import main as worker

    if sys.argv[1] == "--rank":
        sys.exit(worker.rank_main(sys.argv[2]))
    code = worker.main(int(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.flush()
    sys.stderr.flush()
    # All messages are sent, and finalising an interpreter with a framework takes up to a second.
    os._exit(code)
