"""The process of a survey.

python -m gpu.survey --framework torch --device cuda:0 --rows FILE --seconds 240
"""

from __future__ import annotations

import argparse
import sys
import time

from gpu import shared
from gpu.survey.configurations import configurations
from gpu.survey.memory import freeing

if __name__ == "__main__":
    START = time.monotonic()
    parser = argparse.ArgumentParser()
    parser.add_argument("--framework", required=True)
    shared.add_arguments(parser)
    parsed = parser.parse_args()
    options = shared.read_options(parsed)
    asked = configurations(parsed.framework, options.device, quick=options.quick)
    sys.exit(shared.measure_all(asked, options, freeing(parsed.framework), START))
