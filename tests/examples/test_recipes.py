"""Each recipe in ``examples/recipes`` trains as the style that it shows: same weights, same
batches, same losses."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from tests.slow import slow
from trainmark.backends import registry
from trainmark.backends.base import STYLES, EpochPlan, Options
from trainmark.data.dataset import Dataset, Split
from trainmark.workload import catalog
from trainmark.workload.model import initial_weights, lay_out

FOLDER = Path(__file__).parents[2] / "examples" / "recipes"
RECIPES = {
    "torch_idiomatic": ("torch", "idiomatic"),
    "torch_compiled": ("torch", "compiled"),
    "torch_fast": ("torch", "fast"),
    "keras_idiomatic": ("keras", "idiomatic"),
    "keras_compiled": ("keras", "compiled"),
    "keras_fast": ("keras", "fast"),
    "keras_torch_fast": ("keras:torch", "fast"),
    "keras_jax_fast": ("keras:jax", "fast"),
    "jax_idiomatic": ("jax", "idiomatic"),
    "jax_fast": ("jax", "fast"),
}
BY_DAY = ("torch_idiomatic", "keras_idiomatic", "jax_fast")
"""One recipe of each framework; the others wait for the night."""
SEVERAL = [
    *((pytest.param if name in BY_DAY else slow)(name, *shown) for name, shown in RECIPES.items()),
    slow("keras_idiomatic", "keras:torch", "idiomatic"),
    slow("keras_idiomatic", "keras:jax", "idiomatic"),
]
"""A recipe and each style that it shows: one that only calls ``fit`` runs on any engine of
Keras."""
ENGINES = {"keras:torch": "torch", "keras:jax": "jax"}
STEPS = 5
BATCH = 20
EXAMPLES = 100
TOLERANCE = 2e-6
"""Relative, of a loss: a few units in the last place of float32; a skipped update or another batch
is far beyond it."""


def data() -> Dataset:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 10, EXAMPLES, dtype=np.uint8)
    images = (
        rng.integers(0, 60, (EXAMPLES, 28, 28, 1), dtype=np.uint8)
        + 19 * labels[:, None, None, None]
    )
    return Dataset("patterns", Split(images, labels), Split(images[:10], labels[:10]), "", True)


# Both run in separate processes: frameworks keep settings, and Keras its engine.
TRAIN_RECIPE = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
recipe = __import__(sys.argv[2])
given = np.load(sys.argv[3])
weights = [(given[f"kernel{i}"], given[f"bias{i}"]) for i in range(3)]
np.save(sys.argv[4], recipe.train(given["images"], given["labels"], weights, given["epochs"]))
"""


def order() -> np.ndarray:
    return np.random.default_rng(4).permutation(EXAMPLES)[: STEPS * BATCH].reshape(1, STEPS, BATCH)


def losses_of_recipe(name: str, backend: str, folder: Path) -> np.ndarray:
    model = lay_out(catalog.find("mnist-mlp128"))
    examples = data().train
    weights = initial_weights(model, seed=3)
    arrays = {
        "images": examples.images[..., 0],
        "labels": examples.labels.astype(np.int64),
        "epochs": order(),
    }
    for index, plan in enumerate(model.weighted_layers):
        arrays |= {
            f"kernel{index}": weights[plan.kernel_name],
            f"bias{index}": weights[plan.bias_name],
        }
    np.savez(folder / "given.npz", **arrays)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            TRAIN_RECIPE,
            str(FOLDER),
            name,
            str(folder / "given.npz"),
            str(folder / "losses.npy"),
        ],
        env=os.environ
        if backend == RECIPES[name][0]
        else {**os.environ, "KERAS_BACKEND": ENGINES[backend]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "samples/s" in done.stdout
    found: np.ndarray = np.load(folder / "losses.npy")
    return found


def losses_of_style(backend: str, style: str) -> np.ndarray:
    workload = catalog.find("mnist-mlp128")
    model = lay_out(workload)
    made = registry.load(backend).trainer(
        workload, model, data(), Options(style, "cpu", "fp32", seed=1)
    )  # type: ignore[arg-type]
    made.load(initial_weights(model, seed=3))
    made.begin_epoch(EpochPlan((BATCH,) * STEPS, order().reshape(-1)))
    return made.read(made.train(STEPS, lambda: None)).losses


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "backend", "style"), SEVERAL)
def test_a_recipe_trains_as_its_style(name: str, backend: str, style: str, tmp_path: Path) -> None:
    entry = registry.find(backend)
    if not entry.installed:
        pytest.skip(f"{entry.needs} is not installed")
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        expected = pool.submit(losses_of_style, backend, style).result()
    assert expected[-1] != expected[0], "it learns"
    np.testing.assert_allclose(losses_of_recipe(name, backend, tmp_path), expected, rtol=TOLERANCE)


def test_every_recipe_is_tested_and_every_style_has_one() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(RECIPES)
    assert {style for backend, style in RECIPES.values() if backend == "torch"} == set(STYLES)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_short_and_stands_alone(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text()
    assert "trainmark" not in text
    code = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(code) <= 105
