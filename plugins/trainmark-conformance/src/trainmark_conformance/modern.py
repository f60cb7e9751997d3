"""Cases with today's networks and optimisers, and all cases together.

Every constant that could be mistaken is far from what a framework would take.
"""

from __future__ import annotations

from typing import Any

from trainmark.workload.initializers import Normal
from trainmark.workload.layers import (
    GELU,
    Attention,
    AveragePool,
    BatchNorm,
    Conv2D,
    Dense,
    Flatten,
    GlobalAveragePool,
    Layer,
    LayerNorm,
    MaxPool,
    PositionEmbedding,
    ReLU,
    Repeat,
    Residual,
    Scale,
    TiedHead,
    TokenEmbedding,
)
from trainmark.workload.losses import SoftmaxCrossEntropy
from trainmark.workload.optimizers import (
    SGD,
    AdamW,
    Group,
    PiecewiseLinear,
    RMSprop,
    WarmupCosine,
    WeightAverage,
)
from trainmark.workload.pixels import Augmentation, Input, Standardize
from trainmark.workload.schedule import Batches
from trainmark.workload.tokens import Tokens
from trainmark_conformance import cases
from trainmark_conformance.cases import Case, conv, dense, one_step

_WIDE = Normal(0.5)  # with GPT's 0.02, attention would be nearly uniform
_END = (Flatten(), dense(10))
_STANDARDIZE = Standardize((120.0, 99.0), (60.0, 70.0))
_AUGMENTATION = Augmentation(2, flip=True, cutout=3)


def normal(
    filters: int, size: int, padding: Any = "same", momentum: float = 0.3, **changes: Any
) -> tuple[Layer, ...]:
    """Return a convolution without a bias, whose gradient would be 0, and a batch norm."""
    return Conv2D(filters, size, padding, bias="none", **changes), BatchNorm(momentum, 0.1)


def _language_model(name: str, *head: Layer, **changes: Any) -> Case:
    block = (
        Residual((LayerNorm(0.3), Attention(2, qkv=_WIDE, out=_WIDE))),
        Residual((LayerNorm(0.2, shift=False), Dense(16, bias="none"), GELU(), dense(8))),
    )
    body = (
        TokenEmbedding(11, 8, _WIDE),
        PositionEmbedding(7, _WIDE),
        Repeat(2, block),
        LayerNorm(0.1),
    )
    return one_step(name, *body, *head, **({"input": Tokens(5)} | changes))


LANGUAGE_MODEL = _language_model("language model", TiedHead(), loss=SoftmaxCrossEntropy(0.2))
OWN_HEAD = _language_model("language model, own head", Dense(11, bias="none"))
AUGMENTED = one_step(
    "augmented",
    *(conv(3, 3), ReLU(), *_END),
    input=Input((7, 6, 2), 1.0, None, _STANDARDIZE, augment=_AUGMENTATION),
)
BATCH_NORM = one_step("batch norm", *normal(4, 3), ReLU(), *_END)
RESIDUAL = one_step(
    "residuals",
    *normal(6, 3),
    ReLU(),
    MaxPool(3, 2, 1),
    Residual((*normal(6, 3), ReLU(), conv(6, 1, l2=0.1))),
    Residual(
        (*normal(4, 3, 1, stride=2), ReLU(), conv(4, 2, "same")), normal(4, 1, 0, 0.7, stride=2)
    ),
    AveragePool(2, 1),
    GlobalAveragePool(),
    Dense(10, bias="none"),
    Scale(0.3),
    input=Input((12, 10, 2), 1.0, None, _STANDARDIZE, augment=_AUGMENTATION),
)

NETWORKS = (
    *cases.NETWORKS,
    LANGUAGE_MODEL,
    OWN_HEAD,
    _language_model("language model, sum", TiedHead(), loss=SoftmaxCrossEntropy(reduction="sum")),
    AUGMENTED,
    RESIDUAL,
    BATCH_NORM,
    one_step("standardised by channel", *_END, input=Input((7, 6, 2), standardize=_STANDARDIZE)),
    one_step("strided and padded", conv(4, 3, 1, stride=2), MaxPool(3, 2, 1), Scale(0.3), *_END),
    one_step("strided, even", conv(3, 2, "same", stride=2), MaxPool(2, 1, 1), GELU(), *_END),
    one_step(
        "average-pools",
        conv(3, 2),
        AveragePool(3, 1),
        AveragePool(2, 2),
        GlobalAveragePool(),
        dense(10),
    ),
    one_step("layer norm of pixels", conv(3, 2), LayerNorm(0.01), *_END),
    one_step(
        "layer norm of rows",
        conv(3, 3),
        Flatten(),
        LayerNorm(0.01),
        Residual((dense(60),)),
        dense(10),
    ),
    one_step(
        "flatten in a residual",
        Residual((conv(3, 2), *_END), (conv(2, 3), Flatten(), GELU(), dense(10))),
    ),
    one_step("smoothing, l2", conv(3, 2, l2=0.1), *_END, loss=SoftmaxCrossEntropy(0.2)),
    one_step("sum, smoothing", *_END, loss=SoftmaxCrossEntropy(0.2, "sum")),
)

_DOWN = WarmupCosine(2, 4, 0.01)
_CURVE = PiecewiseLinear(((0, 0.2), (2, 1.0), (5, 0.1)))
_BY_GROUP = (Group("vectors", 0.0), Group("*2.kernel", 0.7))

OPTIMIZERS = (
    *cases.OPTIMIZERS,
    *cases.of_optimizers(
        {
            "adamw": AdamW(0.05, 0.8, 0.95, 0.02, weight_decay=0.3),
            "adamw, groups": AdamW(0.05, epsilon=0.02, weight_decay=0.3, groups=_BY_GROUP),
            "adamw, clipping, cosine": AdamW(0.05, epsilon=0.02, clip_norm=0.1, lr_schedule=_DOWN),
            "rmsprop, clipping, cosine": RMSprop(
                0.05, epsilon=0.02, clip_norm=0.1, lr_schedule=_DOWN
            ),
            "sgd, groups": SGD(0.1, weight_decay=0.2, groups=_BY_GROUP),
            "sgd, clipping": SGD(1.0, clip_norm=0.3),
            "sgd, nesterov": SGD(0.1, 0.9, weight_decay=0.05, nesterov=True),
            "sgd, nesterov, cosine": SGD(0.1, 0.9, nesterov=True, lr_schedule=_DOWN),
            "sgd, nesterov velocity": SGD(0.1, 0.9, "velocity", 0.05, nesterov=True),
            "sgd, nesterov velocity, piecewise": SGD(
                0.1, 0.9, "velocity", 0.05, nesterov=True, lr_schedule=_CURVE
            ),
        }
    ),
)


def _five_steps(name: str, case: Case, **changes: Any) -> Case:
    return Case(name, case.changed(**changes).workload, (4,) * 5)


WHOLE = Case(
    "whole", AUGMENTED.changed(optimizer=SGD(0.1), batches=Batches("full")).workload, (24, 24)
)
_ADAMW = AdamW(
    0.05,
    0.8,
    0.9,
    1e-3,
    0.3,
    (Group("vectors", 0.0), Group("*.qkv", 0.7)),
    clip_norm=0.5,
    lr_schedule=_DOWN,
)
RECIPES = (
    _five_steps("adamw of a language model", LANGUAGE_MODEL, optimizer=_ADAMW),
    _five_steps("adamw of a language model, own head", OWN_HEAD, optimizer=_ADAMW),
    _five_steps(
        "nesterov of residuals",
        RESIDUAL,
        loss=SoftmaxCrossEntropy(reduction="sum"),
        optimizer=SGD(
            0.02, 0.9, weight_decay=0.1, nesterov=True, lr_schedule=_CURVE, clip_norm=5.0
        ),
    ),
    _five_steps(
        "velocity and average of a batch norm",
        BATCH_NORM,
        optimizer=SGD(
            0.02,
            0.9,
            "velocity",
            nesterov=True,
            lr_schedule=_CURVE,
            groups=(Group("matrices", 0.2),),
        ),
        weight_average=WeightAverage(0.3),
    ),
)
