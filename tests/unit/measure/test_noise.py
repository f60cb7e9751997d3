from __future__ import annotations

from typing import Any

import pytest

from trainmark.measure import noise as noises
from trainmark.measure.nvidia.nvml import SLOWDOWN_BITS
from trainmark.record.caveats import Caveat
from trainmark.record.record import Epoch, Samples, Window

ROWS = 41
EPOCHS = [Epoch(index=0, start_seconds=2.0, seconds=36.0, steps=1, examples=1)]


def noise(
    epochs: list[Epoch], samples: Samples | None, gpu: int | None, cores: tuple[int, ...] = (0, 1)
) -> set[Caveat]:
    return noises.noise(
        epochs, samples, cores=cores, on_cpu=gpu is None, gpu=gpu, slowdown_bits=SLOWDOWN_BITS
    )


def seen(**columns: Any) -> Samples:
    return Samples(interval_seconds=1.0, t=[float(index) for index in range(ROWS)], **columns)


def test_a_quiet_run() -> None:
    quiet = seen(
        cpu_percent=[[95.0, 97.0]] * ROWS,
        tree_cpu_percent=[190.0] * ROWS,
        stolen_percent=[0.5] * ROWS,
        cpu_hertz=[3e9] * ROWS,
        gpu_sm_hertz=[[1.9e9]] * ROWS,
        gpu_throttle_bits=[[0x4]] * ROWS,
    )
    assert noise(EPOCHS, quiet, None) == set()
    assert noise(EPOCHS, quiet, 0) == set(), "the power cap is how a large GPU works"


def test_nothing_observed_gives_no_caveats() -> None:
    assert noise(EPOCHS, None, 0) == set()
    assert noise(EPOCHS, seen(), 0) == set()


@pytest.mark.parametrize(
    ("columns", "gpu", "caveat"),
    [
        (
            {"cpu_percent": [[95.0, 97.0]] * ROWS, "tree_cpu_percent": [100.0] * ROWS},
            None,
            Caveat.BUSY_MACHINE,
        ),
        ({"stolen_percent": [4.0] * ROWS}, None, Caveat.STOLEN_TIME),
        ({"cpu_hertz": [3e9] * 20 + [2.5e9] * 21}, None, Caveat.CLOCK_DRIFT),
        ({"gpu_sm_hertz": [[1.9e9, 1.9e9]] * 20 + [[1.9e9, 1.5e9]] * 21}, 1, Caveat.CLOCK_DRIFT),
        ({"gpu_throttle_bits": [[0]] * 20 + [[0x40]] + [[0]] * 20}, 0, Caveat.THROTTLED),
    ],
)
def test_each_disturbance_is_named(
    columns: dict[str, Any], gpu: int | None, caveat: Caveat
) -> None:
    assert noise(EPOCHS, seen(**columns), gpu) == {caveat}


def test_what_happens_outside_of_training_does_not_count() -> None:
    early = seen(
        stolen_percent=[90.0] * 3 + [0.0] * 38, gpu_throttle_bits=[[0x40]] * 3 + [[0]] * 38
    )
    assert noise(EPOCHS, early, 0) == set()


def test_another_gpu_does_not_count() -> None:
    assert noise(EPOCHS, seen(gpu_throttle_bits=[[0, 0x40]] * ROWS), 0) == set()


def test_only_neighbours_on_the_cores_of_the_run_count() -> None:
    samples = seen(cpu_percent=[[100.0, 100.0, 0.0, 0.0]] * ROWS, tree_cpu_percent=[100.0] * ROWS)
    assert noise(EPOCHS, samples, None, cores=(0,)) == set()
    assert noise(EPOCHS, samples, None, cores=(0, 1)) == {Caveat.BUSY_MACHINE}


def test_the_clock_of_a_device_that_is_not_known_is_not_the_cpus() -> None:
    drifting = seen(cpu_hertz=[3e9] * 20 + [2.5e9] * 21)
    assert (
        noises.noise(EPOCHS, drifting, cores=(0, 1), on_cpu=False, gpu=None, slowdown_bits=0)
        == set()
    )


def test_where_sides_take_turns_what_happens_in_them_counts() -> None:
    """Rows right before and after each turn of 0.1 s; the host steals in the turns alone, or
    between them."""
    windows = [Window(0.2 * turn + 0.005, 0.1) for turn in range(20)]
    epochs = [Epoch(index=0, start_seconds=0.0, seconds=2.0, steps=1, examples=1, windows=windows)]
    times = [
        0.0,
        *(edge for turn in range(20) for edge in (0.2 * turn + 0.004, 0.2 * turn + 0.106)),
    ]

    def stolen(in_turns: float, between: float) -> Samples:
        return Samples(
            interval_seconds=0.2, t=times, stolen_percent=[0.0, *([between, in_turns] * 20)]
        )

    assert noise(epochs, stolen(50.0, 0.0), None) == {Caveat.STOLEN_TIME}
    assert noise(epochs, stolen(0.0, 50.0), None) == set()
