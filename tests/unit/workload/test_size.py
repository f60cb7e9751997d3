"""``--size``: a smaller network of the same kind."""

from __future__ import annotations

import pytest

from trainmark.errors import UnknownName, UsageError
from trainmark.study.options import read_size
from trainmark.workload import catalog
from trainmark.workload.model import lay_out
from trainmark.workload.size import Size


def test_a_text_is_made_smaller_in_every_way() -> None:
    size = read_size("width=64, depth=2,batch=3,length=32")
    assert size is not None
    sized = size.of(catalog.find("gpt2-124m"))
    assert sized.name == "gpt2-124m (width 64, depth 2, batch 3, length 32)"
    model = lay_out(sized)
    assert model.input_shape == (32,) and sized.batches.size == 3
    assert model.weights["position-embedding1.table"].shape == (32, 64)
    assert (
        model.weights["attention2.qkv"].shape == (64, 192) and "attention3.qkv" not in model.weights
    )


def test_images_are_cropped_and_keep_their_classes() -> None:
    model = lay_out(Size(width=8, crop=64).of(catalog.find("resnet50")))
    assert (model.input_shape, model.classes) == ((64, 64, 3), 1000)


def test_a_smaller_network_has_no_published_figures() -> None:
    assert Size(width=8).of(catalog.find("cifar10-resnet9")).published is None


@pytest.mark.parametrize(
    ("name", "size", "found"),
    [
        ("mnist-cnn", Size(depth=2), "no repeated layers"),
        ("resnet50", Size(length=3), "images"),
        ("shakespeare-gpt", Size(crop=3), "text, not images"),
        ("cifar10-resnet9", Size(crop=40), "40"),
    ],
)
def test_a_size_that_does_not_fit_is_refused(name: str, size: Size, found: str) -> None:
    with pytest.raises(UsageError) as refused:
        size.of(catalog.find(name))
    assert found in str(refused.value.found)


@pytest.mark.parametrize(
    "text", ["width", "width=0", "width=2,width=3", "", "width=-1", "width=1e3"]
)
def test_a_size_that_can_t_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_size(text)


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(UnknownName):
        read_size("with=3")
