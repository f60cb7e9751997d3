"""The announcement of ``trainmark run`` before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from trainmark.data.locate import Located, Source
from trainmark.execute.parent.plan import ScheduledWorkload, Settings, Side
from trainmark.execute.parent.probe import THIS
from trainmark.execute.parent.task import in_rounds
from trainmark.study.run import announcement
from trainmark.workload import catalog

SIDE = Side("numpy", "fast", "cpu", THIS, "fp32", "2.1.0")


@pytest.mark.parametrize("names", [["mnist-mlp512"], ["mnist-mlp512", "mnist-cnn"]])
def test_several_workloads_are_not_compared_with_each_other(names: list[str]) -> None:
    source: Source = get_args(Source)[0]
    data = Located("mnist", Path("/data"), source, "5f" * 32, True, 60_000, 10_000)
    scheduled_workloads = [
        (ScheduledWorkload(catalog.find(name), data, 2), [SIDE]) for name in names
    ]
    said = announcement(in_rounds(scheduled_workloads, Settings()))
    assert ("different workloads are not" in said) == (len(names) > 1)
