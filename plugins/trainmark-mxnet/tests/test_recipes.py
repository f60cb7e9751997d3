"""Each recipe trains as the style that it shows: same weights, same batches, same losses."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

PLUGIN = Path(__file__).parents[1]
SOURCE = PLUGIN.parents[1] / "src"
TOLERANCE = 2e-6
"""Relative, of a loss: a few units in the last place of float32; a skipped update or another batch
is far beyond it."""

STYLE_AND_RECIPE = """
import sys
import numpy as np
from trainmark.backends import registry
from trainmark.backends.base import EpochPlan, Options
from trainmark.data.dataset import Dataset, Split
from trainmark.workload import catalog
from trainmark.workload.model import initial_weights, lay_out

sys.path.insert(0, sys.argv[1])
style, recipe = sys.argv[2], __import__("mxnet_" + sys.argv[2])
steps, size, count = 5, 20, 100
rng = np.random.default_rng(3)
labels = rng.integers(0, 10, count, dtype=np.uint8)
images = rng.integers(0, 60, (count, 28, 28, 1), dtype=np.uint8) + 19 * labels[:, None, None, None]
order = rng.permutation(count).reshape(1, steps, size)

workload = catalog.find("mnist-mlp128")
model = lay_out(workload)
weights = initial_weights(model, seed=3)
split = Split(images, labels)
data = Dataset("patterns", split, split, "", True)
options = Options(style, "cpu", "fp32", seed=1)
trainer = registry.load("mxnet").trainer(workload, model, data, options)
trainer.load(weights)
expected = []
for _ in range(2):
    trainer.begin_epoch(EpochPlan((size,) * steps, order.reshape(-1)))
    expected.append(trainer.read(trainer.train(steps, lambda: None)).losses)
pairs = [(weights[plan.kernel_name], weights[plan.bias_name]) for plan in model.weighted_layers]
found = recipe.train(images[..., 0], labels.astype(np.int64), pairs, np.concatenate([order, order]))
np.savez(sys.argv[3], expected=np.concatenate(expected), found=found)
"""


@pytest.mark.parametrize("style", ["idiomatic", "fast"])
def test_a_recipe_trains_as_its_style(python: Path, style: str, tmp_path: Path) -> None:
    program = tmp_path / "style_and_recipe.py"
    program.write_text(STYLE_AND_RECIPE)
    done = subprocess.run(
        [str(python), str(program), str(PLUGIN / "recipes"), style, str(tmp_path / "losses.npz")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(PLUGIN / "src")])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "samples/s" in done.stdout
    losses = np.load(tmp_path / "losses.npz")
    assert losses["expected"][-1] < losses["expected"][0], "it learns"
    np.testing.assert_allclose(losses["found"], losses["expected"], rtol=TOLERANCE)


@pytest.mark.parametrize("style", ["idiomatic", "fast"])
def test_a_recipe_is_short_and_stands_alone(style: str) -> None:
    text = (PLUGIN / "recipes" / f"mxnet_{style}.py").read_text()
    assert "trainmark" not in text
    assert (
        len(
            [
                line
                for line in text.splitlines()
                if line.strip() and not line.strip().startswith("#")
            ]
        )
        <= 90
    )
