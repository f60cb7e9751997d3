"""Today's networks: trainmark's styles against the loop that people write for them, interleaved on
the same data.

    python bench/modern.py shakespeare-gpt [--rounds 12] [--steps 20] [--style torch:fast ...]
    python bench/modern.py resnet50 --size batch=8 --steps 1

It prints tokens or images per second, the ratio to the plain loop with a 95 % interval, and the
share of the machine's peak in matrix products, which takes its turns among the others. The plain
loops are `contenders/nanogpt.py` and `contenders/resnet50.py`. It needs the data of TRAINMARK_DATA
and an idle machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import ranking
from rounds import Contender, compete

from trainmark import units
from trainmark.data.cache import cache_dir, environment_dir
from trainmark.data.catalog import find
from trainmark.data.load import DataFolder
from trainmark.data.locate import locate
from trainmark.report.table import span
from trainmark.study.options import read_size
from trainmark.workload import catalog
from trainmark.workload.model import lay_out

SCRIPTS = Path(__file__).with_name("contenders")
PLAIN = {"shakespeare-gpt": "nanogpt.py", "resnet50": "resnet50.py"}
STYLES = (
    "torch:idiomatic",
    "torch:compiled",
    "torch:fast",
    "jax:idiomatic",
    "jax:fast",
    "keras:fast",
)
LIMIT = ranking.LIMIT


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workload", choices=PLAIN)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=20, help="of a turn")
    parser.add_argument("--style", action="append", metavar="BACKEND:STYLE", help="may be repeated")
    parser.add_argument("--size", help="as that of trainmark run")
    options = parser.parse_args()
    workload = catalog.find(options.workload)
    if size := read_size(options.size):
        workload = size.of(workload)
    known = find(workload.dataset)
    located = locate(known.name, environment=environment_dir(), cache=cache_dir())
    place = None if located.directory is None else str(located.directory)
    data = DataFolder(known.name, place, workload.input.length)
    batch = workload.batches.size
    workload = dataclasses.replace(workload, published=None).with_schedule(
        epochs=1, steps=None, steps_per_epoch=options.steps
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "workload.json").write_text(json.dumps(workload.to_data()))
        told = {"data": dataclasses.asdict(data), "steps": options.steps, "batch": batch}
        (folder / "data.json").write_text(json.dumps(told | {"vocabulary": len(known.classes)}))
        if (tokens := data.load().train.tokens) is not None:
            tokens.astype(np.uint16).tofile(folder / "tokens.bin")
        python = Path(sys.executable)
        contenders = [
            Contender("plain loop", python, SCRIPTS / PLAIN[options.workload], tested=False)
        ]
        for each in options.style or STYLES:
            contenders.append(
                Contender(
                    each, python, SCRIPTS / "ours.py", tuple(each.rsplit(":", 1)), tested=False
                )
            )
        contenders.append(Contender(LIMIT, python, SCRIPTS / "limit.py", tested=False))
        outcome = compete(contenders, workload.name, folder, options.rounds)
    model = lay_out(workload)
    examples = batch * options.steps
    units_each = workload.input.network_shape[0] if workload.is_text else 1
    peaks = [fact["flops_per_second"] for fact in outcome.facts[LIMIT]]
    ideal = [model.training_flops * examples / peak for peak in peaks]
    print(f"{workload.name}: {options.rounds} rounds, a turn is {options.steps} steps of {batch}")
    print(f"peak: median {np.median(peaks) / 1e9:,.0f} GFLOP/s in matrix products")
    for name, seconds in outcome.seconds.items():
        if name == LIMIT:
            continue
        ratio = ranking.paired_ratio(outcome.seconds["plain loop"], seconds)
        share = ranking.paired_ratio(ideal, seconds)
        rate = examples * units_each / float(np.median(seconds))
        between = span(units.ratio(ratio.low), units.ratio(ratio.high)) if ratio.low else ""
        print(
            f"{name:16} {units.rate(rate, 'tokens/s' if workload.is_text else 'images/s'):>18}  "
            f"{units.ratio(ratio.value)} {between:20} {units.percent(share.value, 1)} of the "
            "peak  "
            f"loss {outcome.facts[name][-1]['loss']:.3f}"
        )
    for name, reason in outcome.left_out.items():
        print(f"left out: {name}: {reason}")


if __name__ == "__main__":
    main()
