"""Changes are written into a script so that a patch of it can be applied and reversed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytest.importorskip("libcst")

from trainmark.analysis.experiments import EXPERIMENTS
from trainmark.record.observed import Observed
from trainmark.study.explain.patch.script import Source, moved
from trainmark.study.explain.patch.writers import WRITERS, Script, write

SCRIPT = """import gc
import torch
import keras
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

torch.autograd.set_detect_anomaly(True)
torch.use_deterministic_algorithms(True, warn_only=True)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1, foreach=True)
loader = DataLoader(data, 32, num_workers=2, prefetch_factor=4)
for x, y in loader:
    h = checkpoint(block, x, use_reentrant=False)
    loss = f(net(h), y)
    gc.collect()
    q = model.predict(x[None], verbose=0)[0]
for x in held_out:
    net(x)
model.compile("sgd", run_eagerly=True)
"""
SEEN = Observed(
    "torch",
    (),
    10,
    1.0,
    device="cpu",
    places={"forward": "train.py:14", "evaluation": "train.py:18", "model": "train.py:9"},
)
WRITTEN = {
    "no-anomaly": (7, ["torch.autograd.set_detect_anomaly(False)"]),
    "no-deterministic": (8, ["torch.use_deterministic_algorithms(False, warn_only=True)"]),
    "channels-last": (9, ["net = net.to(memory_format=torch.channels_last)"]),
    "fused": (10, ["opt = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)"]),
    "workers=4": (
        11,
        [
            "loader = DataLoader(data, 32, num_workers=4, prefetch_factor=4, "
            "persistent_workers=True)"
        ],
    ),
    "persistent-workers": (
        11,
        [
            "loader = DataLoader(data, 32, num_workers=2, prefetch_factor=4, "
            "persistent_workers=True)"
        ],
    ),
    "no-workers": (11, ["loader = DataLoader(data, 32, num_workers=0)"]),
    "no-checkpointing": (13, ["    h = block(x)"]),
    "bf16": (
        14,
        [
            '    with torch.autocast("cpu", dtype=torch.bfloat16):',
            "        loss = f(net(h), y)",
        ],
    ),
    "no-gc": (15, []),
    "direct-call": (
        16,
        ["    q = keras.ops.convert_to_numpy(model(x[None], training=False))[0]"],
    ),
    "no-grad": (17, ["with torch.inference_mode():", "    for x in held_out:", "        net(x)"]),
    "threads=2": (2, ["torch.set_num_threads(2)"]),
    "flush-denormal": (2, ["torch.set_flush_denormal(True)"]),
    "tf32": (2, ['torch.set_float32_matmul_precision("high")']),
    "no-eager": (19, ['model.compile("sgd", run_eagerly=False)']),
}


def script(change: str, line: int) -> Script:
    return Script("train.py", SEEN, {change: [f"train.py:{line}"]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a script."""
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


@pytest.mark.parametrize("change", WRITTEN)
def test_a_change_is_written(folder: Path, change: str) -> None:
    line, expected = WRITTEN[change]
    written = write(Source(folder), script(change, line), change)
    assert written is not None
    added = [each[1:] for each in written.diff().splitlines()[2:] if each.startswith("+")]
    assert added == expected
    assert (folder / "train.py").read_text() == SCRIPT, "the user's file stays as it is"


def test_the_table_of_writers_knows_its_changes() -> None:
    assert WRITERS.keys() <= EXPERIMENTS.keys()
    named = {each.partition("=")[0] for each in WRITTEN}
    assert WRITERS.keys() - named == {"foreach", "no-empty-cache"}, "they are like others here"


def test_all_together_are_a_patch_that_applies_and_reverses(folder: Path) -> None:
    lines = {change: line for change, (line, _) in WRITTEN.items()}
    chosen = [each for each in WRITTEN if each not in ("persistent-workers", "no-workers")]
    source: Source | None = Source(folder)
    for change in chosen:
        assert source is not None, change
        source = write(source, script(change, lines[change]), change)
    assert source is not None
    compile(source.edited["train.py"], "train.py", "exec")
    patch = folder / "fix.patch"
    patch.write_text(source.diff())
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    subprocess.run(["git", "apply", "fix.patch"], cwd=folder, check=True)
    assert (folder / "train.py").read_text() == source.edited["train.py"]
    subprocess.run(["git", "apply", "-R", "fix.patch"], cwd=folder, check=True)
    assert (folder / "train.py").read_text() == SCRIPT


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ("no-anomaly", "train.py:9"),
        ("no-anomaly", "absent.py:7"),
        ("no-anomaly", "../outside.py:1"),
        ("no-anomaly", "notebook.ipynb, cell 2, line 3"),
        ("fused", "train.py:12"),
        ("no-gc", "train.py:14"),
        ("batch=8", "train.py:11"),
        ("same-batch", "train.py:11"),
    ],
)
def test_what_is_not_there_is_not_written(folder: Path, change: str, place: str) -> None:
    (folder.parent / "outside.py").write_text("torch.autograd.set_detect_anomaly(True)\n")
    about = Script("train.py", SEEN, {change: [place]})
    assert write(Source(folder), about, change) is None


def test_without_a_script_nothing_is_inserted(folder: Path) -> None:
    assert write(Source(folder), Script(None, SEEN, {}), "threads=2") is None


def test_a_file_without_a_last_newline(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import gc\ngc.collect()\nx = 1")
    source = write(Source(tmp_path), Script("a.py", SEEN, {"no-gc": ["a.py:2"]}), "no-gc")
    assert source is not None
    assert "\\ No newline at end of file\n" in source.diff()


def test_where_a_line_moves_to() -> None:
    before = "a\nb\nc\nd\n"
    after = "a\nnew\nb\nC\nd\n"
    assert [moved(before, after, line) for line in (1, 2, 3, 4)] == [1, 3, 4, 5]


@pytest.mark.parametrize(
    "content",
    [
        b"import gc\r\ngc.collect()\r\nx = 1\r\n",
        b"# coding: latin-1\nimport gc\ngc.collect()  # \xe9\n",
        b"\xef\xbb\xbfimport gc\ngc.collect()\n",
        b"import gc\x0c\ngc.collect()\n",
        b"import gc\ngc.collect(  # not ended\n",
    ],
    ids=["ends of lines", "encoding", "byte order mark", "form feed", "not Python"],
)
def test_a_file_whose_bytes_might_change_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.py").write_bytes(content)
    line = content.count(b"\n", 0, content.index(b"gc.collect")) + 1
    about = Script("a.py", SEEN, {"no-gc": [f"a.py:{line}"]})
    assert write(Source(tmp_path), about, "no-gc") is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("no-checkpointing", "saver.checkpoint(net.state_dict(), 3)\n"),
        ("no-checkpointing", "saver.checkpoint()\n"),
        ("no-checkpointing", "def checkpoint(f, x): ...\ncheckpoint(f, x)\n"),
        ("no-checkpointing", "from torch.utils.checkpoint import checkpoint\ncheckpoint()\n"),
        ("direct-call", "import keras\nmodel.predict()\n"),
        ("direct-call", "import keras\nmodel.predict(x, batch_size=64)\n"),
        ("threads=1", "import mkl\nmkl.set_num_threads(4)\n"),
        ("threads=1", "import torch as t\nt.set_num_threads(n=4)\n"),
    ],
)
def test_what_only_looks_alike_is_not_written(tmp_path: Path, change: str, text: str) -> None:
    (tmp_path / "a.py").write_text(text)
    about = Script("a.py", SEEN, {change: ["a.py:2", "a.py:1"]})
    assert write(Source(tmp_path), about, change) is None
