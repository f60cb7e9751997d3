"""Gradients written out against autograd's, in float64."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from trainmark.backends.torch import losses  # noqa: E402
from trainmark.backends.torch.chain import VECTOR, Chain  # noqa: E402
from trainmark.backends.torch.network import PaddedConv2d  # noqa: E402
from trainmark.workload.losses import (  # noqa: E402
    ClippedCrossEntropy,
    NegativeLogLikelihood,
    SoftmaxCrossEntropy,
    TwoStageCrossEntropy,
)

CLASSES = 4


def norm(size, beta):
    return nn.LocalResponseNorm(size, alpha=0.7, beta=beta, k=1.5)


def images(filters, *layers):
    """A network of convolutions on 13 × 12 images, whose halves are odd too."""
    body = [nn.Conv2d(2, filters, 3, padding=1), *layers, nn.Flatten()]
    width = nn.Sequential(*body)(torch.zeros(1, 2, 13, 12)).shape[1]
    return nn.Sequential(*body, nn.Linear(width, CLASSES))


NETWORKS = {
    "dense": lambda: nn.Sequential(nn.Flatten(), nn.Linear(2 * 13 * 12, 7), nn.ReLU(), nn.Linear(7, CLASSES)),
    "log-softmax": lambda: nn.Sequential(nn.Flatten(), nn.Linear(312, CLASSES), nn.LogSoftmax(1)),
    "relu first": lambda: nn.Sequential(nn.Flatten(), nn.ReLU(), nn.Linear(312, CLASSES)),
    "halved twice": lambda: images(5, nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(5, 3, 2), nn.MaxPool2d(2), nn.ReLU()),
    "wide and halved": lambda: images(VECTOR, nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(VECTOR, VECTOR, 3), nn.ReLU()),
    "overlapping": lambda: images(VECTOR, nn.ReLU(), nn.MaxPool2d(3, 2), nn.ReLU()),
    "rounded up": lambda: images(3, nn.MaxPool2d(2, ceil_mode=True)),
    "norm": lambda: images(5, norm(5, 0.75), nn.ReLU()),
    "norm after relu": lambda: images(VECTOR, nn.ReLU(), norm(9, 0.6), nn.MaxPool2d(2)),
    "padded": lambda: images(3, PaddedConv2d(3, 4, 2, [(0, 1), (0, 1)]), nn.ReLU(), nn.Flatten(), nn.ReLU()),
    "strides": lambda: images(3, nn.Conv2d(3, 4, 3, stride=2), nn.ReLU()),
}
LOSSES = [SoftmaxCrossEntropy(), TwoStageCrossEntropy(), ClippedCrossEntropy(0.2), NegativeLogLikelihood()]


def batch(size):
    generator = torch.Generator().manual_seed(size)
    x = torch.randn(size, 2, 13, 12, dtype=torch.float64, generator=generator)
    return x, torch.randint(0, CLASSES, (size,), generator=generator)


def check(network, chain, loss, x, y):
    network.zero_grad(set_to_none=True)
    outputs = network(x)
    expected = losses.build(loss)(outputs, y)
    expected.backward()
    gradients = [parameter.grad for parameter in network.parameters()]
    network.zero_grad(set_to_none=True)
    before = x.clone()
    found, found_outputs = chain.learn(x, y)
    torch.testing.assert_close(found, expected.detach())
    torch.testing.assert_close(found_outputs, outputs.detach())
    assert torch.equal(x, before), "the batch is not its to write over"
    for parameter, gradient in zip(network.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
        assert parameter.grad.is_contiguous()


@pytest.mark.parametrize("name", NETWORKS)
def test_every_layer_and_a_smaller_last_batch(name):
    torch.manual_seed(1)
    network, loss = NETWORKS[name]().double(), SoftmaxCrossEntropy()
    chain = Chain(network, loss)
    for size in (7, 3, 7):
        check(network, chain, loss, *batch(size))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_every_loss(loss):
    torch.manual_seed(2)
    network = NETWORKS["log-softmax" if isinstance(loss, NegativeLogLikelihood) else "dense"]().double()
    check(network, Chain(network, loss), loss, *batch(9))


def test_a_batch_that_is_kept_and_one_that_is_not():
    torch.manual_seed(3)
    network, loss = NETWORKS["dense"]().double(), SoftmaxCrossEntropy()
    chain = Chain(network, loss)
    x, y = batch(8)
    chain.keep(x)
    check(network, chain, loss, x, y)
    check(network, chain, loss, x[:5], y[:5])
    check(network, chain, loss, *batch(6))


@pytest.mark.parametrize(("gap", "finite"), [(80.0, True), (95.0, False)])
def test_two_stages_fail_where_the_inverse_of_a_probability_overflows(gap, finite):
    logits = torch.zeros(CLASSES, 5)
    logits[0] = gap
    loss, gradient = losses.build_with_gradient(TwoStageCrossEntropy())(logits, torch.ones(5, dtype=torch.int64))
    assert torch.isfinite(loss) and bool(torch.isfinite(gradient).all()) is finite


def test_small_numbers_are_flushed_in_training_alone():
    from trainmark.backends.torch import precision

    small = torch.tensor(1e-39)
    with precision.denormals_flushed(True):
        assert (small * 0.1).item() == 0.0
        assert float((torch.full((10**6,), 1e-39) * 0.1).max()) == 0.0, "nor on any other thread"
    assert (small * 0.1).item() > 0.0
    assert float((torch.full((10**6,), 1e-39) * 0.1).min()) > 0.0
