"""A read is only reported where all that its value reaches is seen to be a report."""

from __future__ import annotations

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
    "an old format": "print('%d: %.3f' % (step, loss.item()))",
    "a text that is put together": "print('{}: {}'.format(step, round(loss.item(), 3)))",
    "a log": "logger.info('%s', loss.item())",
    "a scalar": "writer.add_scalar('loss', loss.item(), step)",
    "a progress bar": "bar.set_postfix(loss=loss.item())",
    "nothing": "loss.item()",
    "a sum beside an evaluation": "total = 0.0\ntotal += loss.item()\nmodel.eval()\nprint(total)",
    "a sum": "total = 0.0\ntotal += loss.item() * 8\nprint(total / 10)",
    "a moving average": "mean = 0.0\nmean = 0.9 * mean + 0.1 * loss.item()\nprint(mean)",
    "a list": "losses = []\nlosses.append(loss.item())\nprint(sum(losses) / len(losses))",
    "the last of a list": "losses = []\nlosses.append(loss.item())\nprint(losses[-1])",
    "a list of lists": (
        "values = [[each.item() for each in row] for row in [[loss]]]\n"
        "max(max(row) for row in values)"
    ),
    "a list whose names others have, too": (
        "row = loss\nvalues = [row.item() for row in [loss]]\nprint(max(row for row in values))\n"
        "model(row)"
    ),
    "a dictionary": "d = {}\nd['loss'] = loss.item()\nprint(d)",
    "the best so far": (
        "best = float('inf')\nnow = loss.item()\nif now < best:\n    best = now\n"
        "    print('better', best)"
    ),
    "a loop that Ctrl-C ends": (
        "try:\n    print(loss.item())\nexcept KeyboardInterrupt:\n    print('stopped')"
    ),
    "a function that returns it": "def train():\n    return loss.item()\nprint(train())",
    "a function that returns a mean": (
        "def train():\n    total = 0\n    total += loss.item()\n    return total / 2\n"
        "history = []\nhistory.append(train())\nprint(history)"
    ),
}
COMPUTED_WITH = {
    "an action": "environment.step(loss.item())",
    "an index": "values = [1, 2]\nprint(values[loss.item()])",
    "a size": "for _ in range(loss.item()):\n    print(1)",
    "a token": "text = []\ntext.append(loss.item())\nmodel(text)",
    "a condition of a loop": "while loss.item() > 1e-3:\n    break",
    "a decision to train": "if loss.item() < 1:\n    optimizer.step()",
    "a decision to keep": "replay = []\nif loss.item() < 1:\n    replay.append(2)\nmodel(replay)",
    "a decision to go on": (
        "for _ in [1]:\n    if loss.item() > 9:\n        break\n    optimizer.step()"
    ),
    "a decision to skip": (
        "for _ in [1]:\n    if loss.item() > 9:\n        continue\n    optimizer.step()"
    ),
    "a decision to return": (
        "def train():\n    if loss.item() > 9:\n        return\n    optimizer.step()\ntrain()"
    ),
    "an early end": "bad = 0\nif loss.item() > 1:\n    bad += 1\nif bad > 3:\n    raise SystemExit",
    "a decision to clip": "if loss.item() > 0:\n    norm = clip(model)\n    print(norm)",
    "a decision within a print": "if loss.item() > 0:\n    print(optimizer.step())",
    "a short circuit": "loss.item() < 9 and optimizer.step()",
    "a number of repetitions": "for _ in [0] * int(loss.item()):\n    optimizer.step()",
    "a schedule": "scheduler.step(loss.item())",
    "a learning rate": "for group in groups:\n    group['lr'] = loss.item()\noptimizer.use(groups)",
    "a weight of the loss": "weight = 1 / loss.item()\nloss = loss * weight\nloss.backward()",
    "a logarithm": "from math import log\nscale = log(loss.item())\nmodel(scale)",
    "a logarithm of tensors": "scale = torch.log(loss.item())\nmodel(scale)",
    "a function that steps": "def act(value):\n    environment.step(value)\nact(loss.item())",
    "a print of the script's own": (
        "def print(value):\n    environment.step(value)\nprint(loss.item())"
    ),
    "a method of the script's own": (
        "class Agent:\n    def log_metric(self, value):\n        environment.step(value)\n"
        "Agent().log_metric(loss.item())"
    ),
    "what a function returns": "def act():\n    return loss.item()\nenvironment.step(act())",
    "what nobody here calls": "def act():\n    return loss.item()\nregister(act)\nact()",
    "an attribute": "agent.action = loss.item()\nprint(agent.action)",
    "an attribute of a class": "class Config:\n    scale = loss.item()\nmodel(Config.scale)",
    "a container of others": "agent.memory.append(loss.item())\nprint(agent.memory)",
    "another name of a container": ("memory = groups\nmemory += [loss.item()]\nprint(memory)"),
    "two names of a container": "a = b = []\na.append(loss.item())\nmodel(b)",
    "weights": "for p in model.parameters:\n    p -= loss.item()",
    "weights in a list": "ps = list(groups)\nps[0] = loss.item()",
    "a cache": "cache = {}\nv = cache.setdefault(1, loss.item())\nmodel(v)",
    "a method that fills": "environment.compute(loss.item())",
    "what is saved and learnt from": "replay.save(step, loss.item())",
    "what is saved": "torch.save(loss.item(), 'file')\nmodel(torch.load('file'))",
    "what another program reads": "print(loss.item(), file=agent)",
    "an index of a store": "a = loss.item()\nd = {}\nd[a] = 1\nmodel(d)",
    "a container that is given": (
        "def shift(w):\n    w += [loss.item()]\nshift(groups)\nmodel(groups)"
    ),
    "what a decision draws": "if loss.item() > 0:\n    print([each for each in model])",
    "what a decision assigns": "if loss.item() > 0:\n    print(skip := True)",
    "an effect in a comprehension": "[optimizer.step() for _ in str(loss.item())]",
    "a chain of comparisons": "if 0 < loss.item() < 2:\n    print(1)",
    "a key": "max([loss.item(), 2], key=float)",
    "a container of the script's own": (
        "class Counter:\n    def append(self, value):\n        environment.step(value)\n"
        "c = Counter()\nc.append(loss.item())"
    ),
    "an error": (
        "try:\n    print(1 / loss.item())\nexcept ZeroDivisionError:\n    optimizer.step()"
    ),
    "a very long way": (
        "a0 = loss.item()\n" + "".join(f"a{n + 1} = a{n} + 1\n" for n in range(600)) + "print(a600)"
    ),
    "a choice": "model(3 if loss.item() > 0 else 4)",
    "a name that is looked up": "value = loss.item()\nmodel(globals()['value'])",
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

    def __iter__(self) -> Any:
        return iter([1.0])

    def __mul__(self, other: Any) -> Anything:
        return self


class Loss(Anything):
    """What is read."""

    def __float__(self) -> float:
        self._read("__float__")
        return 1.0


def verdicts(tmp_path: Path, source: str, module: str = "__main__") -> list[bool]:
    """Run a script, and return of each read, as it happens, whether it is only reported."""
    file = tmp_path / f"script{len(list(tmp_path.iterdir()))}.py"  # a new one has no cached lines
    file.write_text(textwrap.dedent(source))
    found: list[bool] = []
    reported = Reported()

    class Frames(list[Any]):
        def append(self, read: Any) -> None:
            found.append(reported.is_only_reported(*read))

    names = (
        "agent bar clip environment logger model optimizer register replay scheduler torch writer"
    )
    things = {name: Anything([]) for name in names.split()}
    code = compile(file.read_text(), str(file), "exec")
    given = {"groups": [{}], "step": 3, "loss": Loss(Frames()), "__name__": module}
    exec(code, {**things, **given})
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


def test_names_of_an_imported_module_may_be_used_elsewhere(tmp_path: Path) -> None:
    source = "total = 0\ntotal += loss.item()\nprint(total)"
    inside = "def train():\n    total = 0\n    total += loss.item()\n    print(total)\ntrain()"
    returned = "def train():\n    return loss.item()\nprint(train())"
    for is_reported, module in ((True, "__main__"), (False, "engine")):
        assert verdicts(tmp_path, source, module) == [is_reported]
        assert verdicts(tmp_path, returned, module) == [is_reported]
        assert verdicts(tmp_path, inside, module) == [True]


def test_other_cells_of_a_notebook_are_not_seen(tmp_path: Path) -> None:
    folder = tmp_path / "ipykernel_1"
    folder.mkdir()
    assert verdicts(folder, "print(loss.item())") == [False]


def test_without_source_nothing_is_known(tmp_path: Path) -> None:
    reads: list[Any] = []
    exec(compile("print(loss.item())", str(tmp_path / "gone.py"), "exec"), {"loss": Loss(reads)})
    assert not Reported().is_only_reported(*reads[0])
