"""Is each recipe (examples/recipes) as fast as its style?

`trainmark measure` interleaves both as commands.

    python bench/recipes.py [--only torch_fast,...] [--seconds 300] [--epochs 8] [--minutes 9]
    [--out FILE.jsonl]

The recipe and the style train mnist-mlp128 on the same random images; each reports its epochs by
the hook. It prints the speed of the recipe relative to its style, with the interval, which should
lie within 0.95 to 1.05. It ends after --minutes; call it again to go on.
"""

from __future__ import annotations

import argparse
import builtins
import json
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

RECIPES = Path(__file__).parents[1] / "examples" / "recipes"
EXAMPLES = 60_000
SEED = 1


def main() -> None:
    """Compare each recipe with its style; with three words, train one of them."""
    if len(sys.argv) == 4 and sys.argv[1] in ("recipe", "style"):
        return (recipe if sys.argv[1] == "recipe" else style)(sys.argv[2], int(sys.argv[3]))
    names = sorted(each.stem for each in RECIPES.glob("*.py"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(names))
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    lines = options.out.read_text().splitlines() if options.out and options.out.exists() else []
    known = {each["recipe"]: each for each in map(json.loads, lines)}
    for name in options.only.split(","):
        if name in known or time.monotonic() > end:
            continue
        known[name] = {"recipe": name, **_compared(name, options.seconds, options.epochs)}
        if options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(known[name]) + "\n")
        print(name, *(f"{known[name][key]:.3f}" for key in ("ratio", "low", "high")), flush=True)
    inside = [name for name, each in known.items() if each["low"] >= 0.95 and each["high"] <= 1.05]
    print(f"within 0.95 to 1.05: {len(inside)} of {len(known)}")


def _compared(name: str, seconds: float, epochs: int) -> dict[str, float]:
    command = [sys.executable, __file__, "{side}", name, str(epochs)]
    with tempfile.TemporaryDirectory() as out:
        vary = ["--vary", "side=style,recipe", "--budget", str(seconds), "--no-inject"]
        _trainmark("measure", *vary, "--out", out, "--json", "--", *command)
        speedup: dict[str, Any] = json.loads(_trainmark("compare", out, "--json"))["groups"][1][
            "speedup"
        ]
    return {key: speedup[key] for key in ("ratio", "low", "high")}


def _trainmark(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", *words], stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        sys.exit(f"trainmark {' '.join(words)} ended with {done.returncode}")
    return done.stdout


def recipe(name: str, count: int) -> None:
    """Train a recipe, which prints a line after each epoch."""
    from trainmark import hook

    def told(*_: Any, **__: Any) -> None:
        hook.epoch(examples=EXAMPLES)

    images, labels = _data()
    rng = np.random.default_rng(SEED)
    shapes = [(784, 128), (128, 64), (64, 10)]
    weights = [
        (rng.uniform(-0.05, 0.05, shape).astype(np.float32), np.zeros(shape[1], np.float32))
        for shape in shapes
    ]
    epochs = np.stack([rng.permutation(EXAMPLES).reshape(600, 100) for _ in range(count)])
    train = runpy.run_path(str(RECIPES / f"{name}.py"))["train"]
    builtins.print = told
    hook.begin()
    train(images, labels, weights, epochs)


def style(name: str, count: int) -> None:
    """Train the style of a recipe's name, such as ``keras_jax_fast``."""
    from trainmark import hook
    from trainmark.backends import registry
    from trainmark.backends.base import Options
    from trainmark.data.dataset import Dataset, Split
    from trainmark.execute.worker.order import epoch_plans
    from trainmark.workload import catalog
    from trainmark.workload.model import initial_weights, lay_out

    backend, *engine, how = name.split("_")
    devices = [
        each.id for each in registry.load(":".join([backend, *engine])).capabilities().devices
    ]
    device = "cuda:0" if "cuda:0" in devices else "cpu"  # as the recipe does
    options = Options(how, device, "fp32", SEED)  # type: ignore[arg-type]
    images, labels = _data()
    images = images[..., None]
    test = Split(images[:100], labels[:100])
    data = Dataset("random", Split(images, labels), test, sha256="", complete=True)
    workload = catalog.find("mnist-mlp128").with_schedule(epochs=count, steps=None)
    model = lay_out(workload)
    trainer = registry.load(":".join([backend, *engine])).trainer(workload, model, data, options)
    trainer.load(initial_weights(model, SEED))
    for number, plan in enumerate(epoch_plans(workload, EXAMPLES, SEED, inject=how == "fast")):
        if number == 0:
            trainer.compile(plan)
            hook.begin()
        trainer.begin_epoch(plan)
        results = trainer.train(len(plan.sizes), lambda: None)
        trainer.synchronize()
        trainer.read(results)
        hook.epoch(examples=EXAMPLES)


def _data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (EXAMPLES, 28, 28), dtype=np.uint8), rng.integers(
        0, 10, EXAMPLES
    ).astype(np.int64)


if __name__ == "__main__":
    main()
