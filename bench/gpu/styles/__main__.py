"""The process of one workload.

python -m gpu.styles --workload gpt2-124m --device cuda:0 --rows FILE --seconds 150
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from gpu import shared
from gpu.styles.configurations import configurations
from gpu.survey.memory import freeing

if __name__ == "__main__":
    START = time.monotonic()
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", required=True)
    parser.add_argument(
        "--nanogpt", type=Path, help="a checkout of nanoGPT, whose model.py is measured, too"
    )
    shared.add_arguments(parser)
    parsed = parser.parse_args()
    options = shared.read_options(parsed)
    asked = configurations(
        parsed.workload, options.device, quick=options.quick, nanogpt=parsed.nanogpt
    )
    sys.exit(shared.measure_all(asked, options, freeing("torch"), START))
