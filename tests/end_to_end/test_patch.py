"""``trainmark explain --patch`` writes what wins as a patch, and measures it as one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.command import CommandLine

SCRIPT = """\
import gc

import torch

torch.manual_seed(0)
held = [{number: str(number)} for number in range(50_000)]
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), 0.01)
x = torch.randn(64, 64)
for _ in range(100_000):
    loss = net(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    gc.collect()
"""


@pytest.mark.slow  # it takes half a minute of a quiet machine
def test_a_patch_is_measured_applies_and_reverses(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("libcst")
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(folder)
    words = ("--seconds", "30", "--only", "no-gc", "--patch", "fix.patch")
    code, out, err = command.run("explain", *words, "--", sys.executable, "train.py")
    assert code == 0, err
    assert "gc.collect() searches all Python objects in every step (train.py:15)." in out
    assert "faster and learns the same" in out.replace("\n", " ")
    assert (folder / "train.py").read_text() == SCRIPT, "only a patch is written"
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    subprocess.run(["git", "apply", "fix.patch"], cwd=folder, check=True)
    assert (folder / "train.py").read_text() == SCRIPT.replace("    gc.collect()\n", "")
    subprocess.run(["git", "apply", "-R", "fix.patch"], cwd=folder, check=True)
    assert (folder / "train.py").read_text() == SCRIPT
