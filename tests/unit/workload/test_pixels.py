from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from trainmark.workload import catalog
from trainmark.workload.decode import Misfit
from trainmark.workload.pixels import Distortions, Input, Standardize, distort, prepare, scale

NOISE = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)
NO_CONTRAST = (1.0, 1.0)


def image(*rows: list[int]) -> np.ndarray:
    """One grey image ``[1, height, width, 1]``."""
    return np.array(rows, np.uint8)[None, :, :, None]


@pytest.mark.parametrize(("divide_by", "white"), [(255, 1.0), (256, 0.99609375), (1, 255.0)])
def test_bytes_are_divided(divide_by: float, white: float) -> None:
    x = prepare(Input((1, 2, 1), divide_by=divide_by), image([0, 255]))
    assert x.dtype == np.float32
    assert x.ravel().tolist() == [0, white]


@pytest.mark.parametrize(
    ("name", "white"),
    [
        ("mnist-mlp32", 1.0),
        ("mnist-mlp128", 255 / 256),
        ("mnist-mlp512", 1.0),
        ("mnist-cnn", 2.8215),
    ],
)
def test_each_workload_has_its_own_white(name: str, white: float) -> None:
    images = np.full((1, 28, 28, 1), 255, np.uint8)
    assert prepare(catalog.find(name).input, images).max() == pytest.approx(white, abs=1e-4)


def test_standardising_comes_after_dividing() -> None:
    spec = Input((1, 2, 1), standardize=Standardize(0.1307, 0.3081))
    x = prepare(spec, image([0, 255])).ravel()
    assert x == pytest.approx([-0.1307 / 0.3081, (1 - 0.1307) / 0.3081])


@pytest.mark.parametrize(
    ("side", "crop", "kept"), [(4, 2, [1, 2]), (5, 2, [1, 2]), (5, 3, [1, 2, 3]), (3, 3, [0, 1, 2])]
)
def test_the_crop_is_central(side: int, crop: int, kept: list[int]) -> None:
    rows = np.arange(side, dtype=np.uint8)
    images = np.broadcast_to(10 * rows[:, None] + rows, (1, side, side))[..., None]
    x = prepare(Input((side, side, 1), crop=crop, divide_by=1), images)
    assert x[0, :, :, 0].tolist() == [[10 * row + column for column in kept] for row in kept]


def test_cifar_evaluation_cuts_24_of_32_at_offset_4() -> None:
    x = prepare(Input((32, 32, 3), crop=24, divide_by=1), NOISE)
    assert np.array_equal(x, NOISE[:, 4:28, 4:28].astype(np.float32))


def test_each_image_is_standardised_by_itself_over_its_channels() -> None:
    x = prepare(Input((32, 32, 3), crop=24, divide_by=1, standardize_each=True), NOISE, np.float64)
    np.testing.assert_allclose(x.mean(axis=(1, 2, 3)), 0, atol=1e-12)
    np.testing.assert_allclose(x.std(axis=(1, 2, 3)), 1)
    assert abs(x[0].mean(axis=(0, 1))).max() > 0.001  # not each channel by itself


def test_an_image_of_one_colour_becomes_zero() -> None:
    spec = Input((4, 4, 3), divide_by=1, standardize_each=True)
    assert not prepare(spec, np.full((2, 4, 4, 3), 200, np.uint8)).any()


def test_the_deviation_is_at_least_1_over_the_root_of_the_size() -> None:
    spec = Input((2, 2, 1), divide_by=1, standardize_each=True)
    # mean 1/4, deviation sqrt(3)/4 = 0.433, which is below 1/sqrt(4)
    assert prepare(spec, image([0, 0], [0, 1])).ravel() == pytest.approx([-0.5, -0.5, -0.5, 1.5])
    # twice as bright: deviation 0.866, so now its own counts
    assert prepare(spec, image([0, 0], [0, 2])).ravel() == pytest.approx(
        [-(3**-0.5)] * 3 + [3**0.5]
    )


def test_float64_is_kept() -> None:
    assert prepare(Input((32, 32, 3)), NOISE, np.float64).dtype == np.float64
    spec = Input((32, 32, 3), distortions=Distortions(True, 63, (0.2, 1.8)))
    assert distort(spec, NOISE, np.random.default_rng(0), np.float64).dtype == np.float64


def test_distorting_without_distortions_is_preparing() -> None:
    spec = Input((32, 32, 3), crop=24)
    assert np.array_equal(distort(spec, NOISE, np.random.default_rng(0)), prepare(spec, NOISE))


def test_distortions_of_the_tutorial_give_standardised_images() -> None:
    x = distort(catalog.find("cifar10-cnn").input, NOISE, np.random.default_rng(0))
    assert x.shape == (8, 24, 24, 3)
    assert x.dtype == np.float32
    np.testing.assert_allclose(x.mean(axis=(1, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(x.std(axis=(1, 2, 3)), 1, rtol=1e-4)


def test_the_same_generator_gives_the_same_distortions() -> None:
    spec = catalog.find("cifar10-cnn").input
    first, again, other = (distort(spec, NOISE, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_crops_start_anywhere_and_half_of_them_are_mirrored() -> None:
    count = 3600
    grid = np.arange(36, dtype=np.uint8).reshape(1, 6, 6, 1)
    spec = Input((6, 6, 1), crop=4, divide_by=1, distortions=Distortions(True, 0, NO_CONTRAST))
    x = (
        distort(spec, np.repeat(grid, count, axis=0), np.random.default_rng(0))
        .round()
        .astype(int)[..., 0]
    )
    seen: Counter[tuple[int, int, bool]] = Counter()
    for found in x:
        mirrored = bool(found[0, 0] > found[0, 1])
        plain = found[:, ::-1] if mirrored else found
        row, column = divmod(int(plain[0, 0]), 6)
        assert np.array_equal(plain, grid[0, row : row + 4, column : column + 4, 0])
        seen[row, column, mirrored] += 1
    assert set(seen) == {
        (row, column, flag) for row in range(3) for column in range(3) for flag in (False, True)
    }
    assert all(130 < times < 270 for times in seen.values())  # 200 expected, deviation 14


def test_without_flip_nothing_is_mirrored() -> None:
    rising = np.broadcast_to(np.arange(6, dtype=np.uint8)[:, None], (100, 6, 6, 1))
    spec = Input((6, 6, 1), crop=4, divide_by=1, distortions=Distortions(False, 0, NO_CONTRAST))
    assert (np.diff(distort(spec, rising, np.random.default_rng(0)), axis=2) > 0).all()


def test_brightness_adds_one_number_to_all_values_of_an_image() -> None:
    images = np.full((2000, 2, 2, 3), 100, np.uint8)
    spec = Input((2, 2, 3), divide_by=1, distortions=Distortions(False, 63, NO_CONTRAST))
    shift = distort(spec, images, np.random.default_rng(0)) - 100
    assert np.ptp(shift, axis=(1, 2, 3)).max() < 1e-4
    assert shift.min() == pytest.approx(-63, abs=0.5)
    assert shift.max() == pytest.approx(63, abs=0.5)
    assert shift.mean() == pytest.approx(0, abs=3)


def test_brightness_is_not_clipped() -> None:
    images = np.full((100, 2, 2, 1), 255, np.uint8)
    spec = Input((2, 2, 1), divide_by=1, distortions=Distortions(False, 63, NO_CONTRAST))
    assert distort(spec, images, np.random.default_rng(0)).max() > 256


def test_contrast_stretches_each_channel_about_its_own_mean() -> None:
    images = np.array([[10, 100], [30, 140]], np.uint8).reshape(1, 2, 1, 2).repeat(2000, axis=0)
    spec = Input((2, 1, 2), divide_by=1, distortions=Distortions(False, 0, (0.2, 1.8)))
    x = distort(spec, images, np.random.default_rng(0)).astype(np.float64)
    np.testing.assert_allclose(x.mean(axis=(1, 2)), [[20, 120]] * 2000, rtol=1e-5)
    first, second = (x[:, 1, 0, channel] - x[:, 0, 0, channel] for channel in (0, 1))
    np.testing.assert_allclose(first / 20, second / 40, rtol=1e-4)  # one factor an image
    assert 0.2 <= (first / 20).min() < 0.21
    assert 1.79 < (first / 20).max() <= 1.8 + 1e-5


def test_brightness_cancels_when_each_image_is_standardised() -> None:
    dark, bright = (
        distort(
            Input(
                (32, 32, 3),
                1,
                24,
                standardize_each=True,
                distortions=Distortions(True, amount, (0.2, 1.8)),
            ),
            NOISE,
            np.random.default_rng(4),
        )
        for amount in (0, 63)
    )
    np.testing.assert_allclose(dark, bright, atol=1e-4)


def test_the_stored_images_are_left_alone() -> None:
    before = NOISE.copy()
    prepare(catalog.find("cifar10-cnn").input, NOISE)
    distort(catalog.find("cifar10-cnn").input, NOISE, np.random.default_rng(0))
    assert np.array_equal(before, NOISE)


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: Input((0, 1, 1)), "shape"),
        (lambda: Input((1, 1, 1), divide_by=0), "divide_by"),
        (lambda: Input((4, 3, 1), crop=4), "crop"),
        (lambda: Standardize(0, 0), "sd"),
    ],
)
def test_an_input_refuses_what_makes_no_sense(build: Callable[[], object], field: str) -> None:
    with pytest.raises(Misfit) as caught:
        build()
    assert caught.value.path == (field,)


@pytest.mark.parametrize(
    "name", [name for name in catalog.names() if not catalog.find(name).is_text]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_preparing_in_place_gives_the_same_bits(name: str, dtype: type) -> None:
    spec = catalog.find(name).input
    shape = (4, *spec.shape)
    images = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    before = images.copy()
    high = (spec.shape[0] - spec.network_shape[0]) // 2
    wide = (spec.shape[1] - spec.network_shape[1]) // 2
    cropped = images[:, high : high + spec.network_shape[0], wide : wide + spec.network_shape[1]]
    expected = scale(spec, cropped.astype(dtype))
    found = prepare(spec, images, dtype)
    assert found.dtype == dtype
    assert np.array_equal(found, expected)
    assert np.array_equal(images, before)
