"""How often does the published Flux workload say 'Loss is NaN', and is the stated mechanism why?

    python bench/flux_nan.py [--seeds 20] [--first 1] [--threads N] [--out FILE.jsonl]

It trains mnist-mlp32 as it was published: all 60,000 images in every step, softmax and then log,
ADAM built anew every 200 steps, 2,000 steps; PyTorch `fast` on the CPU, which keeps the two stages
and does not flush subnormal numbers for this loss. Every ten steps it records the largest gap
between the largest logit and the true one over all images. The stated mechanism needs a gap of
88.72 (the true class's probability p is then so small that 1/p overflows float32) to 103.9 (p is 0,
and the loss infinite). It prints one line of JSON per seed, and needs TRAINMARK_DATA with MNIST.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path

import numpy as np

from trainmark.backends import registry
from trainmark.backends.base import EpochPlan, Options
from trainmark.data.cache import cache_dir, environment_dir
from trainmark.data.load import load
from trainmark.data.locate import locate
from trainmark.workload import catalog
from trainmark.workload.losses import TwoStageCrossEntropy
from trainmark.workload.model import initial_weights, lay_out

CHUNKS = 10
STEPS = 200
LOOK_EVERY = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--threads", type=int)
    parser.add_argument(
        "--rate", type=float, help="Another learning rate than the published 0.001."
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    located = locate("mnist", environment=environment_dir(), cache=cache_dir())
    data = load("mnist", located.directory)
    workload = dataclasses.replace(catalog.find("mnist-mlp32"), loss=TwoStageCrossEntropy())
    if options.rate:
        workload = dataclasses.replace(
            workload, optimizer=dataclasses.replace(workload.optimizer, learning_rate=options.rate)
        )
    model = lay_out(workload)
    labels = data.train.labels.astype(np.int64)
    for seed in range(options.first, options.first + options.seeds):
        start = time.perf_counter()
        trainer = registry.load("torch").trainer(
            workload, model, data, Options("fast", "cpu", "fp32", seed, threads=options.threads)
        )
        weights = initial_weights(model, seed)
        plan = EpochPlan((len(labels),) * STEPS, None, whole=True)
        gaps = []
        losses = []
        failed = None
        for chunk in range(CHUNKS):
            trainer.load(weights)
            trainer.begin_epoch(plan)
            for done in range(0, STEPS, LOOK_EVERY):
                part = trainer.read(trainer.train(LOOK_EVERY, lambda: None)).losses
                losses += part.tolist()
                wrong = np.flatnonzero(~np.isfinite(part))
                if wrong.size:
                    failed = chunk * STEPS + done + int(wrong[0])
                    break
                logits = trainer.outputs(data.train.images)
                gaps.append(
                    float((logits.max(axis=1) - logits[np.arange(len(labels)), labels]).max())
                )
            if failed is not None:
                break
            weights = trainer.weights()
        line = json.dumps(
            {
                "seed": seed,
                "failed_at": failed,
                "loss_there": None if failed is None else repr(losses[failed]),
                "last_loss": losses[-1] if failed is None else losses[failed - 1],
                "largest_gap": max(gaps),
                "gap_at_the_end": gaps[-1],
                "seconds": time.perf_counter() - start,
            }
        )
        print(line, flush=True)
        if options.out:
            with options.out.open("a") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
