"""Edits of a file of Python find what they are about, change it, and leave the rest as it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("libcst")

from trainmark.study.explain.patch import edits

IMPORT = "from torch.utils.data import DataLoader\n"
LOADERS = ("torch.utils.data.DataLoader",)
LOADER = """import torch  # first
from torch.utils.data import DataLoader

x = 1  # a comment
loader = DataLoader(
    data, 32,
    shuffle=True,  # each epoch
    num_workers=4
)
"""


def changed(source: str, edited: str | None) -> list[tuple[str, str]]:
    """Return the lines that differ, before and after."""
    assert edited is not None
    before = source.splitlines()
    after = edited.splitlines()
    assert len(before) == len(after)
    return [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]


@pytest.mark.parametrize("line", [5, 8])
def test_an_argument_is_replaced(line: int) -> None:
    edited = edits.set_arguments(LOADER, line, LOADERS, {"num_workers": "0"})
    assert changed(LOADER, edited) == [("    num_workers=4", "    num_workers=0")]


def test_arguments_are_added_and_removed() -> None:
    source = f"{IMPORT}loader = DataLoader(data, num_workers=4, timeout=9)\n"
    arguments = {"num_workers": "2", "persistent_workers": "True", "timeout": None}
    assert edits.set_arguments(source, 2, LOADERS, arguments) == (
        f"{IMPORT}loader = DataLoader(data, num_workers=2, persistent_workers=True)\n"
    )


@pytest.mark.parametrize(
    "source",
    [
        "loader = DataLoader(data, **options)\n",
        "a = DataLoader(data); b = DataLoader(data)\n",
        "loader = make(data)\n",
        "class DataLoader: pass\nloader = DataLoader(data)\n",
        "\n\nloader = DataLoader(data)\n",
        "loader = DataLoader(data, num_workers=2)\n",
        "def broken(\n",
    ],
    ids=[
        "given as a dictionary",
        "two",
        "none",
        "one's own",
        "another line",
        "as it is",
        "not Python",
    ],
)
def test_what_is_not_there_once_is_not_edited(source: str) -> None:
    assert edits.set_arguments(IMPORT + source, 2, LOADERS, {"num_workers": "2"}) is None


def test_the_first_argument_of_every_call_is_set() -> None:
    head = "import torch, mkl\nmkl.set_num_threads(8)\n"
    function = ("torch.set_num_threads",)
    source = f"{head}torch.set_num_threads(8)\ntorch.set_num_threads(n)\n"
    assert edits.set_first_argument(source, function, "2") == (
        f"{head}torch.set_num_threads(2)\ntorch.set_num_threads(2)\n"
    )
    assert edits.set_first_argument(source, function, "2", 4) == (
        f"{head}torch.set_num_threads(8)\ntorch.set_num_threads(2)\n"
    )
    assert edits.set_first_argument(f"{head}torch.set_num_threads(n=3)\n", function, "2") is None


def test_a_statement_is_removed() -> None:
    source = "import gc\nfor a in b:\n    step()\n    gc.collect()  # why?\nprint(1)\n"
    expected = "import gc\nfor a in b:\n    step()\nprint(1)\n"
    assert edits.remove_call(source, 4, ("gc.collect",)) == expected


@pytest.mark.parametrize(
    "source",
    [
        "if a: gc.collect()\n",
        "freed = gc.collect()\n",
        "gc.collect(); step()\n",
    ],
)
def test_a_statement_that_does_more_is_kept(source: str) -> None:
    assert edits.remove_call(f"import gc\n{source}", 2, ("gc.collect",)) is None


def test_a_block_keeps_a_statement() -> None:
    source = "from gc import collect as free\nfor a in b:\n    free()\n"
    expected = "from gc import collect as free\nfor a in b:\n    pass\n"
    assert edits.remove_call(source, 3, ("gc.collect",)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os\nimport torch\nx = 1\n", "import os\nimport torch\ntorch.a(2)\nx = 1\n"),
        ("import torch, os\n", "import torch, os\ntorch.a(2)\n"),
        ("import torch as t\n", None),
        ("from torch import nn\n", None),
        ("def f():\n    import torch\n", None),
    ],
)
def test_a_statement_is_inserted_after_an_import(source: str, expected: str | None) -> None:
    assert edits.insert_after_import(source, "torch", "torch.a(2)") == expected


def test_a_statement_is_inserted_after_an_assignment() -> None:
    more = "{name} = {name}.to(1)"
    assert edits.insert_after_assignment(
        "def f():\n    net = Net()\n    return net\n", 2, more
    ) == ("def f():\n    net = Net()\n    net = net.to(1)\n    return net\n")
    assert edits.insert_after_assignment("a, b = Net(), 1\n", 1, more) is None
    assert edits.insert_after_assignment("self.net = Net()\n", 1, more) is None


def test_a_statement_is_wrapped() -> None:
    source = "for x in y:\n    # the loss\n    loss = f(\n        net(x)\n    )\n    go()\n"
    assert edits.wrap(source, 4, "torch.autocast()") == (
        "for x in y:\n    # the loss\n    with torch.autocast():\n        loss = f(\n"
        "            net(x)\n        )\n    go()\n"
    )
    assert edits.wrap("if net(x): pass\n", 1, "torch.autocast()") is None
    assert edits.wrap("def f():\n    yield net(x)\n", 2, "torch.autocast()") is None


def test_the_innermost_loop_is_wrapped() -> None:
    source = "for e in r:\n    for x in y:\n        if a:\n            net(x)\n"
    assert edits.wrap_loop(source, 4, "torch.inference_mode()") == (
        "for e in r:\n    with torch.inference_mode():\n        for x in y:\n"
        "            if a:\n                net(x)\n"
    )
    assert edits.wrap_loop("net(x)\n", 1, "torch.inference_mode()") is None
    assert edits.wrap_loop(source, 4, "torch.inference_mode()", [3]) is None, "it trains there"
    assert edits.wrap_loop(source, 4, "torch.inference_mode()", [1]) is not None


ONE_LONG_LINE = "import torch; net = f(); x = g(d); opt = torch.optim.SGD(net.weights(), 0.1)\n"


@pytest.mark.parametrize(
    "edit",
    [
        lambda: edits.set_arguments(ONE_LONG_LINE, 1, ("torch.optim.SGD",), {"fused": "True"}),
        lambda: edits.insert_after_import(ONE_LONG_LINE, "torch", "torch.a()"),
    ],
)
def test_a_script_of_one_line_stays_valid(edit: Callable[[], str | None]) -> None:
    edited = edit()
    assert edited is not None
    compile(edited, "edited", "exec")
