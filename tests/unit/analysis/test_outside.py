"""The table's words about a command, from its observations."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tests.records import a_command
from trainmark.analysis.outside import observe
from trainmark.record.caveats import Caveat
from trainmark.record.record import DeviceRef, Record, Samples


def seen(record: Record) -> dict[str, Any]:
    return {each.what: each for each in observe(record)}


def watched(rows: int = 40, **columns: Any) -> Samples:
    return Samples(0.25, [0.25 * (row + 1) for row in range(rows)], **columns)


def test_nothing_observed_gives_no_words() -> None:
    assert observe(a_command(process_seconds=None)) == ()


def test_what_lies_outside_of_epochs_is_start_up() -> None:
    assert seen(a_command(seconds=(3.0, 3.0, 2.0)))["start-up"].value == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("waits", "words"), [((0.2, 0.4), "keeps up"), ((2.0, 2.0), "is the bottleneck")]
)
def test_the_wait_for_batches(waits: tuple[float, float], words: str) -> None:
    record = a_command(seconds=(3.0, 3.0))
    epochs = [
        structs.replace(epoch, data_wait_seconds=wait)
        for epoch, wait in zip(record.epochs, waits, strict=True)
    ]
    found = seen(structs.replace(record, epochs=epochs))["data wait"]
    assert found.value == pytest.approx(waits[1] / 3), "the first epoch includes start-up"
    assert words in found.words


def test_a_slow_loader_explains_an_idle_cpu() -> None:
    record = a_command(seconds=(3.0, 3.0), caveats=[Caveat.BUSY_MACHINE])
    record = structs.replace(record, samples=watched(tree_cpu_percent=[20.0] * 40))
    assert "unclear" in seen(record)["CPU"].words
    epochs = [structs.replace(epoch, data_wait_seconds=2.0) for epoch in record.epochs]
    assert "waits for its loader" in seen(structs.replace(record, epochs=epochs))["CPU"].words


@pytest.mark.parametrize(
    ("percent", "words"),
    [
        (195.0, "CPU-bound"),
        (100.0, "one thread does the work"),
        (20.0, "mostly idle"),
        (60.0, "0.6 of 2 cores busy."),
    ],
)
def test_utilisation_of_the_cores(percent: float, words: str) -> None:
    found = seen(a_command(samples=watched(tree_cpu_percent=[None, *[percent] * 39])))["CPU"]
    assert found.value == pytest.approx(percent / 200)
    assert words in found.words


def test_a_quota_is_all_the_cores_there_are() -> None:
    record = a_command(samples=watched(tree_cpu_percent=[None, *[50.0] * 39]))
    quota = structs.replace(record, machine=structs.replace(record.machine, cpu_quota=0.5))
    assert "CPU-bound" in seen(quota)["CPU"].words


def test_of_a_command_that_was_ended_all_that_was_seen_counts() -> None:
    samples = watched(tree_cpu_percent=[None, *[1.0] * 39])
    assert (
        "mostly idle"
        in seen(a_command(process_seconds=None, status="timeout", samples=samples))["CPU"].words
    )


def test_a_long_first_epoch_may_be_start_up() -> None:
    assert "more than the others" in seen(a_command(seconds=(5.0, 1.0, 1.0)))["start-up"].words
    assert "more than the others" not in seen(a_command(seconds=(1.0, 1.0, 1.0)))["start-up"].words


def test_a_busy_machine_gives_no_words_about_waiting() -> None:
    record = a_command(
        samples=watched(tree_cpu_percent=[None, *[20.0] * 39]), caveats=[Caveat.BUSY_MACHINE]
    )
    assert "so the bottleneck is unclear" in seen(record)["CPU"].words


def test_what_comes_after_the_end_does_not_count() -> None:
    samples = watched(80, tree_cpu_percent=[None, *[190.0] * 39, *[0.0] * 40])
    assert seen(a_command(samples=samples))["CPU"].value == pytest.approx(0.95)


def test_gaps_of_its_gpu_and_of_no_other() -> None:
    device = DeviceRef("cuda:1", "H200", "accelerator", gpu=1)
    samples = watched(gpu_percent=[[100.0, 30.0]] * 40)
    found = seen(structs.replace(a_command(samples=samples), device=device))
    assert found["GPU gaps"].value == pytest.approx(0.7)
    assert "waits for the host" in found["GPU gaps"].words
    assert "GPU gaps" not in seen(a_command(samples=samples))


def test_memory_that_grows() -> None:
    grows = watched(tree_resident_bytes=[(100 + 10 * row) << 20 for row in range(40)])
    stays = watched(tree_resident_bytes=[500 << 20] * 40)
    assert "a leak or a cache" in seen(a_command(samples=grows))["memory growth"].words
    assert "about the same" in seen(a_command(samples=stays))["memory growth"].words


def test_throttling_is_reported() -> None:
    assert "throttling" in seen(a_command(caveats=[Caveat.THROTTLED]))
