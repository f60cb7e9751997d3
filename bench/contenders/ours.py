"""trainmark's own backends, driven as `trainmark.execute.worker.main` drives them: `ours.py ...
BACKEND STYLE`.

The turn contains everything that an epoch needs: drawing its order, training, waiting for the
device, fetching the losses.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import arrays
import numpy as np
from turns import Turns

# this interpreter may not have trainmark
sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from trainmark.backends import registry
from trainmark.backends.base import Backend, Options
from trainmark.data.dataset import Dataset, Split
from trainmark.data.load import DataFolder
from trainmark.errors import TrainmarkError, Unsupported
from trainmark.execute.worker.order import epoch_plans
from trainmark.workload.model import initial_weights, lay_out
from trainmark.workload.spec import Workload

SEED = 1


def backend_or_leave(turns: Turns, name: str, style: str) -> Backend:
    try:
        backend = registry.load(name)
    except (TrainmarkError, ImportError) as missing:
        turns.cannot(str(missing))
    if style not in backend.capabilities().styles:
        turns.cannot(f"{name} has no style {style!r} here")
    return backend


def data_of(folder: Path) -> Dataset:
    """The dataset that the parent names, else the arrays in its folder."""
    named = folder / "data.json"
    if named.exists():
        return DataFolder(**json.loads(named.read_text())["data"]).load()
    x_train, y_train, x_test, y_test = arrays.load(folder)
    return Dataset(
        "bench", Split(x_train, y_train), Split(x_test, y_test), sha256="", complete=True
    )


def main() -> None:
    turns = Turns()
    name, style = sys.argv[4:6]
    backend = backend_or_leave(turns, name, style)
    turns.versions(**{"numpy": np.__version__, **backend.capabilities().packages})
    data = data_of(turns.folder)
    workload = Workload.from_data(json.loads((turns.folder / "workload.json").read_text()))
    workload = workload.with_schedule(epochs=turns.epochs, steps=None)
    model = lay_out(workload)
    options = Options(style, "cpu", "fp32", SEED)
    try:
        trainer = backend.trainer(workload, model, data, options)
    except Unsupported as lacking:
        turns.cannot(str(lacking))
    trainer.load(initial_weights(model, SEED))

    compiled = False
    for plan in epoch_plans(workload, len(data.train), SEED, inject=style == "fast"):
        if not compiled:
            trainer.compile(plan)
            compiled = True
        trainer.begin_epoch(plan)
        results = trainer.train(len(plan.sizes), lambda: None)
        trainer.synchronize()
        turns.epoch_done(loss=float(trainer.read(results).losses.mean()))
    turns.test_accuracy(trainer.evaluate("test").accuracy)


if __name__ == "__main__":
    main()
