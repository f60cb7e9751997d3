from __future__ import annotations

from msgspec import structs

from tests.records import a_record
from trainmark.analysis.comparison import compare
from trainmark.record.record import Record
from trainmark.report.tables import comparison_markdown


def on(machine: str, **changes: object) -> Record:
    record = a_record(machine=machine)
    return structs.replace(record, machine=structs.replace(record.machine, **changes))


def test_only_differences_are_shown_above_the_numbers() -> None:
    old = on("old", gpus=["NVIDIA H100"], gpu_driver="550.54", cpu_governors=["powersave"])
    new = on("new", gpus=["NVIDIA H100"], gpu_driver="580.65", cpu_governors=["performance"])
    comparison = compare([old, new], by="machine")
    assert {each.what: each.values for each in comparison.differences} == {
        "CPU governor": {"old": "powersave", "new": "performance"},
        "GPU driver": {"old": "550.54", "new": "580.65"},
    }
    text = comparison_markdown(comparison)
    assert text.index("580.65") < text.index("mnist-mlp512 ·")


def test_unknown_facts_are_shown_as_unknown() -> None:
    comparison = compare([on("a", cpu_turbo=True), on("b", cpu_turbo=None)], by="machine")
    assert [each.values for each in comparison.differences] == [{"a": "on", "b": "not known"}]


def test_packages_count() -> None:
    a = a_record(machine="a")
    b = a_record(machine="b")
    b = structs.replace(b, python=structs.replace(b.python, packages={"cudnn": "9.1"}))
    (difference,) = compare([a, b], by="machine").differences
    assert (difference.what, difference.values) == ("cudnn", {"a": "not known", "b": "9.1"})


def test_record_order_and_packages_of_one_backend_are_ignored() -> None:
    def both(machine: str) -> list[Record]:
        torch = a_record(machine=machine, backend="torch")
        jax = a_record(machine=machine, backend="jax", device="cuda:0")
        torch = structs.replace(
            torch, python=structs.replace(torch.python, packages={"torch": "2"})
        )
        return [
            torch,
            structs.replace(jax, python=structs.replace(jax.python, packages={"jax": "1"})),
        ]

    assert compare([*both("a"), *reversed(both("b"))], by="machine").differences == ()


def test_containers_that_share_a_name_are_distinguished() -> None:
    (difference,) = compare(
        [on("host", cpu_quota=2.0), on("host", cpu_quota=8.0)], by="machine"
    ).differences
    assert difference.values == {"host (1)": "2 cores", "host (2)": "8 cores"}


def test_along_another_dimension_machines_are_not_distinguished() -> None:
    assert compare([on("a", cpu="x"), on("b", cpu="y")]).differences == ()


def test_another_trainmark_is_a_difference() -> None:
    old, new = (
        structs.replace(on(name), trainmark=version)
        for name, version in (("old", "1.0"), ("new", "1.1"))
    )
    (difference,) = compare([old, new], by="machine").differences
    assert (difference.what, difference.values) == ("trainmark", {"old": "1.0", "new": "1.1"})
