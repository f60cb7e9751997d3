"""Random numbers: dropout, distortions and seeds.

A trainer returns only losses, so these networks have losses that show their input: logit 0 is at
least 40, the other nine are 0, and the label is one of them. The loss is then logit 0, up to 4e-17,
which is a weighted sum of the input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from trainmark.backends.base import EpochPlan
from trainmark.workload.layers import (
    ChannelDropout,
    Dense,
    Dropout,
    Flatten,
    Layer,
    TiedHead,
    TokenEmbedding,
)
from trainmark.workload.model import Weights
from trainmark.workload.optimizers import SGD
from trainmark.workload.pixels import Distortions, Input
from trainmark.workload.schedule import Batches
from trainmark.workload.spec import Workload
from trainmark.workload.tokens import Tokens
from trainmark_conformance import acts
from trainmark_conformance.cases import Case, a_workload, all_of_class_1
from trainmark_conformance.suite import Suite

Float64 = NDArray[np.float64]

OFFSET = 40.0
NEGLIGIBLE = 1e-12  # a learning rate at which nothing is learned
RATE = 0.25  # share of dropout; exact for a framework that draws only a few bits, too
UNIT = 0.125  # base of the sum that encodes the mask
WIDTH = 2
CHANNELS = 3
# factors of the two examples, so that one number encodes both masks
BRIGHTNESS = (1, 2 ** (WIDTH * CHANNELS))
STEPS = 150
DRAWN = 5  # standard deviations that a share or a mean of random draws may be off
TEXT = a_workload(TokenEmbedding(10, 8), TiedHead(), input=Tokens(5))
SAME_CONTRAST = (1.0, 1.0)
BEFORE_FLATTEN = (Dropout(RATE), Flatten())
AFTER_FLATTEN = (Flatten(), Dropout(RATE))
CHANNELWISE = (ChannelDropout(RATE), Flatten())
EITHER_DROPOUT = pytest.mark.parametrize(
    "layers", [AFTER_FLATTEN, CHANNELWISE], ids=["dropout", "channel-dropout"]
)


def readout(case: Case, by_value: ArrayLike) -> Weights:
    """Return weights of a single dense layer whose loss is ``40 + Σ by_value · x``; values without
    a factor get 0.
    """
    weights = {name: np.zeros_like(value) for name, value in case.weights.items()}
    values = np.asarray(by_value)
    weights["dense1.kernel"][: len(values), 0] = values
    weights["dense1.bias"][0] = OFFSET
    return weights


class ChanceConformance(Suite):
    """Draws have the right distribution, are independent where they should be, and depend on the
    seed.
    """

    @pytest.mark.parametrize(
        "layers", [BEFORE_FLATTEN, AFTER_FLATTEN, CHANNELWISE], ids=lambda each: each[0].kind
    )
    def test_dropout_zeroes_its_share_and_scales_the_rest(self, layers: tuple[Layer, ...]) -> None:
        kept = self._masks(layers)
        draws = kept if layers is not CHANNELWISE else kept[:, :, :1]
        assert abs(draws.mean() - (1 - RATE)) < DRAWN * np.sqrt(RATE * (1 - RATE) / draws.size)

    @EITHER_DROPOUT
    def test_dropout_is_drawn_anew_for_every_example_and_step(
        self, layers: tuple[Layer, ...]
    ) -> None:
        kept = self._masks(layers)[:, :, 0]  # [steps, example, channel]
        self._independent("examples of a batch", kept[:, 0], kept[:, 1])
        self._independent("neighbouring steps", kept[1:], kept[:-1])
        self._independent("epochs", kept[STEPS:], kept[:STEPS])
        self._independent("channels", kept[:, :, 1:], kept[:, :, :-1])

    def test_channel_dropout_drops_whole_maps_and_dropout_does_not(self) -> None:
        kept = self._masks(BEFORE_FLATTEN)
        self._independent("pixels of a channel", kept[:, :, 0], kept[:, :, 1])
        kept = self._masks(CHANNELWISE)
        np.testing.assert_array_equal(kept[:, :, 0], kept[:, :, 1], "a channel is dropped whole")

    def test_the_gradient_passes_where_the_value_passed(self) -> None:
        """One step at a learning rate of 1 subtracts the mean of the kept inputs from the weights
        of logit 0.
        """
        case = _dropout_case(AFTER_FLATTEN, learning_rate=1.0)
        trainer = self.trainer(case, readout(case, _MASK_WEIGHTS))
        (kept,) = _decoded(acts.train(trainer, EpochPlan((2,), np.arange(2))).losses)
        found = (_MASK_WEIGHTS - trainer.weights()["dense1.kernel"][:, 0]).reshape(WIDTH, CHANNELS)
        expected = np.tensordot(np.array(BRIGHTNESS) / 2, kept, axes=1) / (1 - RATE)
        np.testing.assert_allclose(found, expected, atol=1e-3)

    @EITHER_DROPOUT
    def test_the_seed_decides_the_masks(self, layers: tuple[Layer, ...]) -> None:
        self._depends_on_the_seed(lambda seed: self._masks(layers, seed, epochs=1))

    @pytest.mark.parametrize("workload", [a_workload(), TEXT], ids=["images", "windows of a text"])
    def test_the_seed_decides_its_own_shuffle(self, workload: Workload) -> None:
        case = Case("shuffled", workload, (8,) * 3)
        plan = EpochPlan(case.sizes, None)
        self._depends_on_the_seed(
            lambda seed: acts.train(self.trainer(case, seed=seed), plan).losses
        )

    def test_half_of_the_images_are_mirrored(self) -> None:
        """Left and right, never upside down."""
        pixels = np.arange(12).reshape(3, 4, 1)
        found = self._readings(pixels, Distortions(True, 0.0, SAME_CONTRAST))
        assert set(found.round(3)) == {0.0, 3.0}
        assert abs((found > 1).mean() - 0.5) < DRAWN * 0.5 / np.sqrt(len(found))

    def test_every_place_of_the_crop_is_as_likely(self) -> None:
        pixels = np.arange(25).reshape(5, 5, 1)
        found = self._readings(pixels, Distortions(False, 0.0, SAME_CONTRAST), crop=3)
        places, counts = np.unique(found.round(3), return_counts=True)
        assert places.tolist() == [0, 1, 2, 5, 6, 7, 10, 11, 12]
        expected = len(found) / 9
        assert np.abs(counts - expected).max() < DRAWN * np.sqrt(expected)

    def test_brightness_moves_all_values_of_an_image_alike(self) -> None:
        pixels = np.array([100, 120, 90, 101]).reshape(1, 2, 2)
        distortions = Distortions(False, 63.0, SAME_CONTRAST)
        found = self._readings(pixels, distortions)
        self._uniform(found, 37, 163)
        of_four = self._readings(pixels, distortions, size=4)
        assert of_four.std() == pytest.approx(found.std() / 2, rel=0.4), (
            "each image of a batch has its own"
        )
        apart = self._readings(pixels, distortions, [1, 0, 0, -1])
        np.testing.assert_allclose(apart, -1, atol=1e-3)

    def test_contrast_moves_values_away_from_the_mean_of_their_channel(self) -> None:
        # channel 0 is 100, 80; channel 1 is 120, 20
        pixels = np.array([100, 120, 80, 20]).reshape(1, 2, 2)
        distortions = Distortions(False, 0.0, (0.2, 1.8))
        self._uniform(self._readings(pixels, distortions), 90 + 0.2 * 10, 90 + 1.8 * 10)
        means = self._readings(pixels, distortions, [0.5, 0, 0.5])
        np.testing.assert_allclose(means, 90, rtol=1e-5)
        # 90 + 10 f - 0.2 · (70 + 50 f): one f for both channels
        both = self._readings(pixels, distortions, [1, -0.2])
        np.testing.assert_allclose(both, 76, rtol=1e-5)

    def _masks(
        self, layers: tuple[Layer, ...], seed: int = 1, epochs: int = 2
    ) -> NDArray[np.int64]:
        """Return which values were kept, ``[steps, example, pixel, channel]``; evaluates in
        between.
        """
        case = _dropout_case(layers)
        trainer = self.trainer(case, readout(case, _MASK_WEIGHTS), seed=seed)
        plan = EpochPlan((2,) * STEPS, np.tile(np.arange(2), STEPS))
        trainer.compile(plan)
        losses = []
        for _ in range(epochs):
            trainer.evaluate("test")
            losses.append(acts.train(trainer, plan).losses)
            trainer.outputs(case.data.test.images)
        return _decoded(np.concatenate(losses))

    def _readings(
        self,
        pixels: NDArray[Any],
        distortions: Distortions,
        by_value: ArrayLike = (1,),
        size: int = 1,
        crop: int | None = None,
    ) -> Float64:
        """Train on copies of one image; returns each batch's mean of ``Σ by_value · x``, by default
        the first value.
        """
        images = np.repeat(pixels.astype(np.uint8)[None], 2 * STEPS, axis=0)
        height, width, channels = pixels.shape
        spec = Input((height, width, channels), 1.0, crop, distortions=distortions)
        workload = a_workload(
            Flatten(), Dense(10), input=spec, optimizer=SGD(NEGLIGIBLE), batches=Batches(size)
        )
        case = Case("readings", workload, (size,), given=all_of_class_1(images))
        plan = EpochPlan((size,) * (len(images) // size), np.arange(len(images)))
        return acts.train(self.trainer(case, readout(case, by_value)), plan).losses - OFFSET

    def _depends_on_the_seed(self, draw: Callable[[int], NDArray[Any]]) -> None:
        first = draw(1)
        again = draw(1)
        other = draw(2)
        np.testing.assert_array_equal(first, again, "the same seed draws the same")
        assert (first != other).any(), "another seed draws something else"

    def _independent(self, what: str, one: NDArray[Any], other: NDArray[Any]) -> None:
        correlation = np.corrcoef(one.ravel(), other.ravel())[0, 1]
        assert abs(correlation) < DRAWN / np.sqrt(one.size), (
            f"{what}: correlation {correlation:.2f}"
        )

    def _uniform(self, found: Float64, low: float, high: float) -> None:
        width = high - low
        assert found.min() >= low - 1e-3 and found.max() <= high + 1e-3
        assert found.min() < low + 0.1 * width and found.max() > high - 0.1 * width
        assert abs(found.mean() - (low + high) / 2) < DRAWN * width / np.sqrt(12 * len(found))


def _dropout_case(layers: tuple[Layer, ...], learning_rate: float = NEGLIGIBLE) -> Case:
    images = (
        np.ones((2, 1, WIDTH, CHANNELS), np.uint8)
        * np.array(BRIGHTNESS, np.uint8)[:, None, None, None]
    )
    workload = a_workload(
        *layers,
        Dense(10),
        input=Input((1, WIDTH, CHANNELS), 1.0),
        optimizer=SGD(learning_rate),
        batches=Batches(2),
    )
    return Case("masks", workload, (2,), given=all_of_class_1(images))


_MASK_WEIGHTS = UNIT * 2.0 ** np.arange(WIDTH * CHANNELS, dtype=np.float32)


def _decoded(losses: Float64) -> NDArray[np.int64]:
    """Decode the masks from the losses; fails if the kept values are not scaled by ``1/(1 -
    rate)``.
    """
    codes = 2 * (losses - OFFSET) / UNIT * (1 - RATE)
    whole = codes.round()
    np.testing.assert_allclose(
        codes, whole, atol=0.02, err_msg="kept values are scaled by 1/(1 - rate)"
    )
    bits = whole.astype(np.int64)[:, None] >> np.arange(2 * WIDTH * CHANNELS) & 1
    return bits.reshape(-1, 2, WIDTH, CHANNELS)
