"""A read is only reported where all that its value reaches is seen to be a report."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from trainmark.inject.changes.reported import Reported

ONLY_REPORTED = {
    "a print": "print(loss.item())",
    "a format": "print(f'{step}: {loss.item():.3f}')",
    "a log": "logger.info('%s', loss.item())",
    "a scalar": "writer.add_scalar('loss', loss.item(), step)",
    "a progress bar": "bar.set_postfix(loss=loss.item())",
    "nothing": "loss.item()",
    "a sum": "total = 0.0\ntotal += loss.item() * 8\nprint(total / 10)",
    "a list": "losses = []\nlosses.append(loss.item())\nprint(sum(losses) / len(losses))",
    "a dictionary": "d = {}\nd['loss'] = loss.item()\nprint(d)",
    "a file": "torch.save({'loss': loss.item()}, 'file')",
    "the best so far": (
        "best = 9.0\nnow = loss.item()\nif now < best:\n    best = now\n    torch.save(1, 'file')"
    ),
    "early stopping": (
        "bad = 0\nif loss.item() > 1:\n    bad += 1\n    if bad > 3:\n        raise SystemExit"
    ),
    "a function that prints": "def show(value):\n    print('loss', value)\nshow(loss.item())",
    "a function that returns it": "def train():\n    return loss.item()\nprint(train())",
    "a meter": (
        "class Meter:\n"
        "    def __init__(self):\n        self.sum = 0\n"
        "    def add_up(self, value, n=1):\n        self.sum += value * n\n"
        "    def show(self):\n        print(self.sum)\n"
        "meter = Meter()\nmeter.add_up(loss.item(), n=2)\nmeter.show()"
    ),
    "an attribute of the script's own": (
        "class Agent:\n    def __init__(self):\n        self.losses = []\n"
        "    def learn(self):\n        self.losses.append(loss.item())\n        "
        "print(self.losses)\nAgent().learn()"
    ),
    "a loop over a list": "losses = [loss.item()]\nfor each in losses:\n    print(each)",
    "a check": "assert loss.item() < 10",
}
COMPUTED_WITH = {
    "an action": "environment.step(loss.item())",
    "an index": "values = [1, 2]\nprint(values[loss.item()])",
    "a size": "for _ in range(loss.item()):\n    print(1)",
    "a token": "text = []\ntext.append(loss.item())\nmodel(text)",
    "a condition of a loop": "while loss.item() > 1e-3:\n    break",
    "a decision to train": "if loss.item() < 1:\n    optimizer.step()",
    "a decision to keep": "replay = []\nif loss.item() < 1:\n    replay.append(2)\nmodel(replay)",
    "a schedule": "scheduler.step(loss.item())",
    "a learning rate": "for group in groups:\n    group['lr'] = loss.item()\noptimizer.use(groups)",
    "a weight of the loss": "weight = 1 / loss.item()\nloss = loss * weight\nloss.backward()",
    "a logarithm": "from math import log\nscale = log(loss.item())\nmodel(scale)",
    "a function that steps": "def act(value):\n    environment.step(value)\nact(loss.item())",
    "what a function returns": "def act():\n    return loss.item()\nenvironment.step(act())",
    "what nobody here calls": "def act():\n    return loss.item()\nregister(act)\nact()",
    "an attribute": "agent.action = loss.item()\nenvironment.step(agent.action)",
    "a container of others": "agent.memory.append(loss.item())\nprint(agent.memory)",
    "a choice": "print(1 if loss.item() > 0 else 2)\nmodel(3 if loss.item() > 0 else 4)",
    "a skipped step": (
        "for _ in [1]:\n    if loss.item() > 9:\n        continue\n    optimizer.step()"
    ),
}


class Anything:
    """Stands for a tensor, a model, an environment, a writer; whatever is done works."""

    frames: list[FrameType]

    def __init__(self, frames: list[tuple[FrameType, str]]) -> None:
        object.__setattr__(self, "frames", frames)

    def item(self) -> int:
        """Keep the frame that reads."""
        self._read("item")
        return 1

    def _read(self, method: str) -> None:
        self.frames.append((sys._getframe(2), method))

    def __getattr__(self, name: str) -> Any:
        return Anything([])

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __call__(self, *args: Any, **more: Any) -> Any:
        return Anything([])

    def __mul__(self, other: Any) -> Anything:
        return self


class Loss(Anything):
    """What is read."""

    def __float__(self) -> float:
        self._read("__float__")
        return 1.0


def verdicts(tmp_path: Path, source: str) -> list[bool]:
    """Run a script, and return of each read, as it happens, whether it is only reported."""
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(source))
    found: list[bool] = []
    reported = Reported(lambda name: name.startswith(str(tmp_path)))

    class Frames(list[Any]):
        def append(self, read: Any) -> None:
            found.append(reported.is_only_reported(*read))

    names = "agent bar environment logger model optimizer register replay scheduler torch writer"
    things = {name: Anything([]) for name in names.split()}
    code = compile(file.read_text(), str(file), "exec")
    exec(code, {**things, "groups": [{}], "step": 3, "loss": Loss(Frames())})
    return found


@pytest.mark.parametrize("name", ONLY_REPORTED)
def test_what_is_only_reported(tmp_path: Path, name: str) -> None:
    found = verdicts(tmp_path, ONLY_REPORTED[name])
    assert found
    assert all(found)


@pytest.mark.parametrize("name", COMPUTED_WITH)
def test_what_the_script_computes_with(tmp_path: Path, name: str) -> None:
    found = verdicts(tmp_path, COMPUTED_WITH[name])
    assert found
    assert not any(found[-1:])


def test_each_read_of_a_line_is_decided_by_itself(tmp_path: Path) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("columns are known since Python 3.11")
    assert verdicts(tmp_path, "print(loss.item()); environment.step(loss.item())") == [True, False]


def test_conversions_are_reads(tmp_path: Path) -> None:
    assert verdicts(tmp_path, "print(float(loss))\nmodel(float(loss))") == [True, False]


def test_what_another_file_of_the_user_reads_is_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "class Agent:\n    def learn(self):\n        self.score = loss.item()\n"
        "        print(self.score)\nAgent().learn()"
    )
    assert verdicts(tmp_path, source) == [True]
    other = tmp_path / "other_file_of_the_user.py"
    other.write_text("def learn(agent):\n    return agent.score * 2\n")
    spec = importlib.util.spec_from_file_location("other_file_of_the_user", other)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert verdicts(tmp_path, source) == [False]


def test_without_source_nothing_is_known(tmp_path: Path) -> None:
    reads: list[Any] = []
    exec(compile("print(loss.item())", str(tmp_path / "gone.py"), "exec"), {"loss": Loss(reads)})
    assert not Reported(lambda _: True).is_only_reported(*reads[0])
