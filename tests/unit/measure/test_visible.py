from __future__ import annotations

import pytest

from trainmark.measure.nvidia.visible import number_of
from trainmark.measure.vendor import Driver, Gpu

ALIKE = Driver(gpus=(Gpu(0, "H100", "GPU-aaaa1111"), Gpu(1, "H100", "GPU-bbbb2222")))
UNLIKE = Driver(gpus=(Gpu(0, "T400", "GPU-aaaa1111"), Gpu(1, "H100", "GPU-bbbb2222")))


@pytest.mark.parametrize(
    ("device", "environment", "number"),
    [
        ("cuda:1", {}, 1),
        ("cuda:0", {"CUDA_VISIBLE_DEVICES": "1"}, 1),
        ("cuda:0", {"CUDA_VISIBLE_DEVICES": "GPU-bbbb"}, 1),
        ("cuda:1", {"CUDA_VISIBLE_DEVICES": "1,0"}, 0),
        ("cuda:1", {"CUDA_VISIBLE_DEVICES": "0"}, None),
        ("cuda:2", {}, None),
        ("cpu", {}, None),
        ("mps", {}, None),
    ],
)
def test_the_number_of_a_device(
    device: str, environment: dict[str, str], number: int | None
) -> None:
    assert number_of(device, ALIKE, environment) == number


def test_a_part_of_a_gpu_is_not_the_gpu() -> None:
    divided = Driver(
        gpus=(Gpu(0, "H100", "GPU-aaaa1111", mig=True), Gpu(1, "H100", "GPU-bbbb2222", mig=False))
    )
    assert number_of("cuda:0", divided, {"CUDA_VISIBLE_DEVICES": "MIG-5e1f"}) is None
    assert number_of("cuda:0", divided, {}) is None
    assert number_of("cuda:1", divided, {}) == 1


def test_a_gpu_that_gives_no_access_is_not_counted() -> None:
    one = Driver(
        gpus=(
            Gpu(0, problem="no permission"),
            Gpu(1, "H100", "GPU-bbbb2222"),
            Gpu(2, "H100", "GPU-cccc3333"),
        )
    )
    assert number_of("cuda:1", one, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) == 2


def test_the_order_of_unlike_gpus_is_known_to_cuda_alone() -> None:
    assert number_of("cuda:0", UNLIKE, {}) is None
    assert number_of("cuda:0", UNLIKE, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) == 0
