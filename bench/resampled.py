"""How often is a verdict wrong on rounds that were really measured?

    python bench/resampled.py docs/results/verdict [--tries 30] [--seed 1]

It reads rounds of equal sides that `bench/verdict.py` has recorded, draws some of them with
replacement, and lets trainmark's own rule look at them as `trainmark run` does. The first two
rounds of a try have two adjacent blocks of their round, as in an opening; further rounds have all.
A try with other sides gets their logarithmic ratio added to each block. Unlike `bench/looks.py`,
this assumes nothing about the errors; but a try can only show what was measured on those machines.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

from looks import Ended, end_of

from trainmark.analysis.obvious import BLOCKS, ROUNDS
from trainmark.analysis.slices import Block

CONDITIONS = ("equal", "opened-equal", "nice", "busy", "comes-and-goes")
"""Files with equal sides: twice on an idle machine, and next to three kinds of other programs."""
RATIOS = (1.0, 1.05, 3.0)
MOST_ROUNDS = 8
"""The README's first command runs about this many."""

Round = tuple[Block, ...]


def recorded_rounds(file: Path) -> list[Round]:
    """Read the rounds of a file that have enough blocks for an opening."""
    found: list[Round] = []
    for line in file.read_text().splitlines():
        for blocks in json.loads(line)["rounds"]:
            if len(blocks) >= BLOCKS:
                found.append(tuple(Block(number, *block) for number, block in enumerate(blocks)))
    return found


def one_try(recorded: Sequence[Round], ratio: float, chance: random.Random) -> Ended:
    """Draw rounds until the rule ends them."""

    def draw(number: int) -> Round:
        drawn = chance.choice(recorded)
        if number < ROUNDS:
            first = chance.randrange(len(drawn) - BLOCKS + 1)
            drawn = drawn[first : first + BLOCKS]
        return tuple(
            Block(position, block.log_ratio + math.log(ratio), block.disturbed)
            for position, block in enumerate(drawn)
        )

    return end_of(draw, MOST_ROUNDS)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tries", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{options.tries} tries a row, seed {options.seed}, {MOST_ROUNDS} rounds at most")
    columns = ("faster", "slower", "after two", "holds")
    print(f"{'condition':16}{'rounds':>8}{'ratio':>7}" + "".join(f"{each:>11}" for each in columns))
    for condition in CONDITIONS:
        recorded = recorded_rounds(options.folder / f"{condition}.jsonl")
        for ratio in RATIOS:
            chance = random.Random(f"{options.seed} {condition} {ratio}")
            ended = [one_try(recorded, ratio, chance) for _ in range(options.tries)]
            faster = sum(each.verdict == "faster" for each in ended)
            slower = sum(each.verdict == "slower" for each in ended)
            early = sum(each.is_decided and each.rounds == ROUNDS for each in ended)
            held = sum(each.holds(ratio) for each in ended)
            print(
                f"{condition:16}{len(recorded):8}{ratio:7.2f}{faster:8}{slower:8}{early:11}{held:8}",
                flush=True,
            )


if __name__ == "__main__":
    main()
