"""Seeds a script, and writes a digest of the weights after all of its steps.

Python imports it first. Each optimizer tells of its steps by a hook that PyTorch offers, so no
function of the script or of PyTorch is replaced here.
"""

import atexit
import hashlib
import os
import random
import sys
from pathlib import Path

_FILE = os.environ.get("FOREIGN_DIGEST", "")
_SCRIPT = os.environ.get("FOREIGN_SCRIPT", "")


def _watch():
    import numpy
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    digest = hashlib.sha256()
    steps = 0

    def after_step(optimizer, _args, _options):
        nonlocal steps
        steps += 1
        for group in optimizer.param_groups:
            for weights in group["params"]:
                digest.update(weights.detach().contiguous().view(-1).numpy().tobytes())

    def write():
        Path(_FILE).write_text(f"{steps} {digest.hexdigest()}\n")

    register_optimizer_step_post_hook(after_step)
    atexit.register(write)


if _SCRIPT and sys.orig_argv[1:2] == [_SCRIPT]:  # not in the processes that it starts
    _watch()
