"""The chosen sides, given the options and the capabilities of the backends."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from trainmark.backends.base import STYLES, Capabilities, Device, ResourceLimits
from trainmark.errors import AbsentDevice, NotInstalled, UnknownName, Unsupported, UsageError
from trainmark.execute.parent.choose import (
    choose_backends,
    choose_sides,
    require_answers,
    require_known_styles,
)
from trainmark.execute.parent.probe import THIS, Interpreter, Seen
from trainmark.workload import catalog

WORKLOAD = catalog.find("mnist-mlp128")
KINDS = frozenset({"dense", "relu", "flatten", "softmax-cross-entropy", "sgd"})
DEVICES = (Device("cpu", "CPU", "cpu"), Device("cuda:0", "GPU", "accelerator"))
CAN = Capabilities("able", "1", STYLES, DEVICES, KINDS)
OTHER = Interpreter("old", Path("/opt/old/bin/python"))


def sides(
    can: Capabilities, *, styles: tuple[str, ...] = (), devices: tuple[str, ...] = ()
) -> list[str]:
    found, _ = choose_sides(
        WORKLOAD, [Seen(can.name, THIS, can)], styles, devices, "fp32", ResourceLimits()
    )
    return [f"{side.style} {side.device}" for side in found]


def test_without_names_the_two_default_styles_on_every_device() -> None:
    assert sides(CAN) == ["idiomatic cpu", "fast cpu", "idiomatic cuda:0", "fast cuda:0"]


def test_a_backend_with_one_style_uses_that_style() -> None:
    assert sides(dataclasses.replace(CAN, styles=("idiomatic",)), devices=("cpu",)) == [
        "idiomatic cpu"
    ]


def test_a_feature_that_one_device_lacks_is_named() -> None:
    can = dataclasses.replace(
        CAN, devices=(DEVICES[0], dataclasses.replace(DEVICES[1], precisions=("bf16",)))
    )
    found, refused = choose_sides(
        WORKLOAD, [Seen("able", THIS, can)], ("fast",), (), "fp32", ResourceLimits()
    )
    assert [side.device for side in found] == ["cpu"]
    assert len(refused) == 1 and "cuda:0" in refused[0]


@pytest.mark.parametrize(
    ("styles", "devices", "error"),
    [(("fast",), ("cuda:9",), AbsentDevice), (("fast",), ("cpu", "cuda:9"), AbsentDevice)],
)
def test_a_device_that_no_backend_sees_is_an_error(
    styles: tuple[str, ...], devices: tuple[str, ...], error: type[Exception]
) -> None:
    with pytest.raises(error, match="cuda:9"):
        sides(CAN, styles=styles, devices=devices)


def test_a_kind_that_the_backend_lacks_is_an_error() -> None:
    with pytest.raises(Unsupported, match="sgd"):
        sides(dataclasses.replace(CAN, kinds=KINDS - {"sgd"}))


def test_a_label_means_another_interpreter() -> None:
    assert choose_backends(["numpy", "torch@old", "torch@old"], [OTHER]) == [
        ("numpy", THIS),
        ("torch", OTHER),
    ]


@pytest.mark.parametrize(
    ("names", "interpreters", "error", "said"),
    [
        (["torch@new"], [OTHER], UnknownName, "interpreter label"),
        (["numpy"], [OTHER], UsageError, "'old' is not used"),
        (["nump"], [], UnknownName, "numpy"),
    ],
)
def test_unknown_names_and_unused_labels_are_refused(
    names: list[str], interpreters: list[Interpreter], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        choose_backends(names, interpreters)


def test_a_backend_that_gave_no_answer_says_where_and_why() -> None:
    with pytest.raises(
        NotInstalled, match=r"torch.*does not work in /opt/old/bin/python.*no module"
    ) as caught:
        require_answers([Seen("torch", OTHER, problem="no module named torch")])
    assert caught.value.fix.endswith("/opt/old/bin/python -m pip install torch")
    with pytest.raises(NotInstalled) as caught:  # it is installed, so something else is wrong
        require_answers(
            [
                Seen(
                    "torch",
                    THIS,
                    problem="RuntimeError: no supported devices found for platform CUDA",
                )
            ]
        )
    assert caught.value.fix == "Run `trainmark doctor`"


def test_a_plug_in_for_another_version_gets_no_install_command() -> None:
    told = (
        "the plug-in 'toy' was written for another version: found this. Update it, or change it "
        "to match trainmark.backends.base."
    )
    with pytest.raises(Unsupported) as caught:
        require_answers([Seen("toy", OTHER, problem=told)])
    assert str(caught.value) == f"the backend 'toy' does not work in /opt/old/bin/python: {told}"


def test_a_style_that_no_backend_can_have() -> None:
    with pytest.raises(UnknownName, match="tutorial"):
        require_known_styles(["fast", "tutorial"])
