from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainmark.errors import SpecError, UnknownName
from trainmark.workload import catalog
from trainmark.workload.losses import SoftmaxCrossEntropy, TwoStageCrossEntropy
from trainmark.workload.model import lay_out
from trainmark.workload.optimizers import Adam
from trainmark.workload.spec import Workload

from .samples import TOML

CLASSIC = [
    "mnist-mlp32",
    "mnist-mlp32:two-stage",
    "mnist-mlp128",
    "mnist-cnn",
    "mnist-mlp512",
    "cifar10-cnn",
]
MODERN = ["shakespeare-gpt", "shakespeare-gpt-10m", "cifar10-resnet9", "resnet50", "gpt2-124m"]


def test_the_catalogue_lists_classic_and_then_modern_workloads() -> None:
    assert catalog.names() == CLASSIC + MODERN


@pytest.mark.parametrize("name", CLASSIC)
def test_a_workload_is_found_by_its_name(name: str) -> None:
    workload = catalog.find(name)
    assert workload.name == name
    assert workload.dataset == ("cifar10" if name == "cifar10-cnn" else "mnist")
    assert workload.published is not None
    assert workload.published.runs


@pytest.mark.parametrize("name", CLASSIC + MODERN)
def test_a_workload_survives_json(name: str) -> None:
    workload = catalog.find(name)
    assert (
        Workload.from_data(json.loads(json.dumps(workload.to_data(), allow_nan=False))) == workload
    )


def test_a_variant_replaces_its_part_and_leaves_the_rest() -> None:
    plain = catalog.find("mnist-mlp32")
    variant = catalog.find("mnist-mlp32:two-stage")
    assert (plain.loss, variant.loss) == (SoftmaxCrossEntropy(), TwoStageCrossEntropy())
    assert (plain.model, plain.optimizer, plain.schedule) == (
        variant.model,
        variant.optimizer,
        variant.schedule,
    )


def test_a_users_file_works_the_same_way(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TOML)
    workload = catalog.find(str(file))
    assert workload.name == "tiny"
    assert lay_out(workload).parameters == 784 * 10 + 10
    assert catalog.find(f"{file}:adam").optimizer == Adam(0.001)
    assert catalog.find(f"{file}:adam").name == "tiny:adam"


def test_a_copy_of_a_catalogue_file_is_the_same_workload(tmp_path: Path) -> None:
    source = Path(catalog.__file__).parent / "cifar10-cnn.toml"
    (tmp_path / "copy.toml").write_bytes(source.read_bytes())
    assert catalog.find(str(tmp_path / "copy.toml")) == catalog.find("cifar10-cnn")


@pytest.mark.parametrize(
    ("typed", "near"),
    [("mnist-mlp33", "mnist-mlp32"), ("cifar-cnn", "cifar10-cnn"), ("mnist_cnn", "mnist-cnn")],
)
def test_an_unknown_workload_is_answered_with_the_nearest(typed: str, near: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown workload '{typed}'") as caught:
        catalog.find(typed)
    assert near in caught.value.near


@pytest.mark.parametrize(
    "name", ["../x", "../catalog/mnist-cnn", "a/b", "", ".", "..", "mnist-cnn\n", "mnist-*"]
)
def test_a_name_stays_in_the_folder(name: str) -> None:
    with pytest.raises(UnknownName):
        catalog.find(name)


@pytest.mark.parametrize("name", ["/etc/passwd", "/dev/null", "x" * 300])
def test_a_path_with_another_ending_is_named_in_the_error(name: str) -> None:
    with pytest.raises(SpecError, match=r"is not a workload: expected a name that ends in \.toml"):
        catalog.find(name)


def test_a_folder_does_not_take_the_suggestion_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mnist-cn").mkdir()
    with pytest.raises(UnknownName, match="Did you mean mnist-cnn"):
        catalog.find("mnist-cn")


def test_an_unknown_variant_lists_the_known_ones() -> None:
    with pytest.raises(
        UnknownName, match="unknown variant 'two-stages': expected one of two-stage"
    ) as caught:
        catalog.find("mnist-mlp32:two-stages")
    assert caught.value.near == ("two-stage",)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_a_spec_error(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "mine.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SpecError, match="can't be read"):
        catalog.find(str(file))


CONV = '[[model]]\nkind = "conv2d"\nfilters = 2\nsize = {size}\n\n'
LOG_SOFTMAX = 'units = 10\n\n[[model]]\nkind = "log-softmax"\n'
FLATTEN = '[[model]]\nkind = "flatten"\n\n'


@pytest.mark.parametrize(
    ("old", "new", "line", "where", "expected", "found"),
    [
        pytest.param(
            "units = 10",
            'units = "ten"',
            13,
            "model[1].units",
            "a whole number",
            "'ten'",
            id="wrong type",
        ),
        pytest.param(
            "epochs = 2",
            "epochs = true",
            26,
            "schedule.epochs",
            "a whole number",
            "True",
            id="bool",
        ),
        pytest.param(
            "units",
            "unit",
            13,
            "model[1].unit",
            "did you mean units?",
            "the key 'unit'",
            id="unknown key",
        ),
        pytest.param(
            "units = 10", "", 11, "model[1]", "the key 'units'", "no such key", id="missing key"
        ),
        pytest.param(
            'dataset = "mnist"',
            "",
            1,
            None,
            "the key 'dataset'",
            "no such key",
            id="missing at the top",
        ),
        pytest.param(
            "= 10",
            "= 10\nbias = 'nones'",
            14,
            "model[1].bias",
            "'none' or a table",
            "'nones'",
            id="word",
        ),
        pytest.param(
            '"dense"',
            '"densee"',
            12,
            "model[1].kind",
            "did you mean dense?",
            "'densee'",
            id="unknown kind",
        ),
        pytest.param(
            FLATTEN, "", 8, "model[0]", "a 'flatten' layer", "28 × 28 × 1", id="dense on images"
        ),
        pytest.param(
            FLATTEN,
            CONV.format(size=29) + FLATTEN,
            11,
            "model[0].size",
            "a window of at most 28",
            "29",
            id="window too large",
        ),
        pytest.param(
            FLATTEN,
            FLATTEN + CONV.format(size=3),
            11,
            "model[1]",
            "images before 'conv2d'",
            "784",
            id="conv on rows",
        ),
        pytest.param(
            "units = 10\n",
            LOG_SOFTMAX,
            18,
            "loss",
            "the loss 'nll'",
            "softmax",
            id="log-softmax without nll",
        ),
        pytest.param(
            '"softmax-cross-entropy"',
            '"nll"',
            15,
            "loss",
            "a last layer 'log-softmax'",
            "'dense'",
            id="nll alone",
        ),
        pytest.param(
            "= 0.1", "= 0", 20, "optimizer.learning_rate", "a number above 0", "0.0", id="rate 0"
        ),
        pytest.param(
            "= 0.1",
            '= 0.1\ngroups = [{ of = "*.bias", weight_decay = 0 }, { of = "*.biass", '
            "weight_decay = 0 }]",
            21,
            "optimizer.groups[1].of",
            "fits a trained weight (did you mean *.bias?)",
            "'*.biass'",
            id="no such weights",
        ),
        pytest.param(
            "= 0.1",
            '= 0.1\n\n[[optimizer.groups]]\nof = "matrix"\nweight_decay = 0',
            23,
            "optimizer.groups[0].of",
            "did you mean matrices?",
            "'matrix'",
            id="no group of weights",
        ),
        pytest.param(
            "= 0.1", "= nan", 20, "optimizer.learning_rate", "a finite number", "nan", id="rate nan"
        ),
        pytest.param(
            "= 0.1", "= inf", 20, "optimizer.learning_rate", "number", "inf", id="rate inf"
        ),
        pytest.param(
            "size = 100",
            "size = 'all'",
            23,
            "batches.size",
            "'full'",
            "'all'",
            id="neither number nor full",
        ),
        pytest.param("size = 100", "size = -1", 23, "batches.size", "above 0", "-1", id="negative"),
        pytest.param(
            "[28, 28, 1]",
            "[28, 28]",
            6,
            "input.shape",
            "[height, width, channels]",
            "a list of 2",
            id="two sides",
        ),
        pytest.param(
            "[28, 28, 1]",
            "[28, 28, 1]\n\n[input.standardize]\nmean = [0.1]\nsd = [0.2, 0.3]",
            10,
            "input.standardize.sd",
            "a number, or a list of 1, one per channel",
            "a list of 2",
            id="channels",
        ),
        pytest.param(
            "[28, 28, 1]",
            "[28, 28, 1]\ncrop = 29",
            7,
            "input.crop",
            "1 to 28",
            "29",
            id="crop too large",
        ),
        pytest.param(
            "[28, 28, 1]",
            "[\n  28,\n  0,\n  1\n]",
            6,
            "input.shape",
            "above 0",
            "0",
            id="list over lines",
        ),
    ],
)
def test_a_mistake_is_answered_with_its_line(
    old: str, new: str, line: int, where: str | None, expected: str, found: str
) -> None:
    assert TOML.count(old) >= 1
    with pytest.raises(SpecError) as caught:
        catalog.parse(TOML.replace(old, new, 1), "mine.toml")
    assert caught.value.problem == f"mine.toml, line {line}" + (f" at {where}" if where else "")
    assert expected in caught.value.expected
    assert found in caught.value.found


def test_bad_toml_is_answered_with_its_line() -> None:
    with pytest.raises(
        SpecError, match=r"mine\.toml is not TOML: expected TOML 1\.0, found .*line 3"
    ):
        catalog.parse(TOML.replace('dataset = "mnist"', "dataset = mnist"), "mine.toml")


def test_a_mistake_in_a_variant_is_reported_with_its_line() -> None:
    text = TOML.replace("learning_rate = 0.001", "learning_rate = 0")
    with pytest.raises(SpecError, match=r"line 29 at optimizer\.learning_rate"):
        catalog.parse(text, "mine.toml", "adam")
    assert catalog.parse(text, "mine.toml").name == "tiny"


def test_a_mistake_outside_a_variant_is_reported_with_its_line() -> None:
    with pytest.raises(SpecError, match="line 3 at dataset"):
        catalog.parse(TOML.replace('"mnist"', "7"), "mine.toml", "adam")


@pytest.mark.parametrize(
    "text",
    [
        TOML.replace("[variants.adam]\noptimizer = ", "[variants]\nadam = 3 #"),
        "variants = 'adam'\n" + TOML[: TOML.index("[variants")],
    ],
)
def test_variants_that_are_no_tables_are_a_spec_error(text: str) -> None:
    with pytest.raises((SpecError, UnknownName)):
        catalog.parse(text, "mine.toml", "adam")


@pytest.mark.parametrize("variant", ["", "adam"])
@pytest.mark.parametrize(("new", "expected"), [("", "the key 'name'"), ("name = 3", "a string")])
def test_the_name_is_checked_in_a_variant_too(new: str, expected: str, variant: str) -> None:
    with pytest.raises(SpecError) as caught:
        catalog.parse(TOML.replace('name = "tiny"', new), "mine.toml", variant)
    assert caught.value.expected == expected
