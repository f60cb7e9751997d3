"""How JAX's sums are timed: in a compiled loop, of as many arrays as a network has, each turn after the other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")

ON_TWO_DEVICES = """
import jax, numpy
from trainmark.backends.jax.data_parallel import AXIS, JaxReduction
reduction = JaxReduction(jax.sharding.Mesh(numpy.array(jax.devices()), (AXIS,)), 6)
taken = numpy.ones((64, 1024), "f"), [numpy.ones(1000, "f")] * 6, numpy.ones((1024, 1024), "f")
for summed in (False, True):
    print("PROGRAM", reduction.program(12, summed=summed).lower(*taken).compile().as_text())
"""


def test_two_devices_meet_for_every_array_in_each_turn_of_a_loop() -> None:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    words = [sys.executable, "-c", ON_TWO_DEVICES]
    said = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    _, without, summed = said.split("PROGRAM")
    assert " all-reduce(" not in without
    (sums,) = re.findall(r"= \((.*?)\) all-reduce\(", summed)
    assert sums.count("f32[1000]") == 6
    for program in (without, summed):
        assert '"known_trip_count":{"n":"12"}' in program
        before_it, entry, _ = program.partition("\nENTRY ")
        assert entry and " copy(" not in before_it, "the difference would not be the sum alone"


def test_a_turn_waits_for_what_stands_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    from trainmark.backends.jax import data_parallel

    monkeypatch.setattr(data_parallel, "_TINY", 0.01)
    reduction = data_parallel.JaxReduction(
        jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]), (data_parallel.AXIS,)), 6
    )
    found = [[np.asarray(stretch()[0])[0, 0] for stretch in reduction.stretches(24_000, n)] for n in (1, 2, 12)]
    batch = array = 1.0
    expected = []
    for _ in range(12):
        batch += 0.01 * 6 * array
        batch = np.tanh(np.tanh(batch))
        array += 0.01 * batch
        expected.append(batch)
    for both, turns in zip(found, (1, 2, 12), strict=True):
        assert both == pytest.approx([expected[turns - 1]] * 2, rel=1e-5)
    assert all(abs(a - b) > 1e-3 for a, b in pairwise(expected[:3])), "else it would not show"
