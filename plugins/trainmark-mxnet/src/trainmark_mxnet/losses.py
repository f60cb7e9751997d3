"""The loss and the reported results of a step, as symbols.

A head propagates the gradient of the *sum* over the batch, like MXNet's ``SoftmaxOutput``; the
optimiser divides.
"""

from __future__ import annotations

import math

import mxnet as mx

from trainmark.errors import assert_never
from trainmark.workload.losses import (
    ClippedCrossEntropy,
    Loss,
    NegativeLogLikelihood,
    SoftmaxCrossEntropy,
    TwoStageCrossEntropy,
)
from trainmark.workload.model import Model
from trainmark_mxnet.network import LABEL, kernel, log_softmax

HEAD, ROW = range(2)  # outputs of a training symbol
LOSS, L2_LOSS, HITS = range(3)  # values of a row


def training(loss: Loss | None, model: Model, outputs: mx.sym.Symbol) -> mx.sym.Symbol:
    """Return the head to train on, and a row: mean loss with its L2 part, the L2 part, correct
    predictions.

    The L2 terms propagate no gradient: in MXNet they are the optimiser's weight decay.
    """
    label = mx.sym.Variable(LABEL)
    each = _each(loss, outputs, label)
    softmax = isinstance(loss, SoftmaxCrossEntropy)
    head = (
        mx.sym.SoftmaxOutput(outputs, label, name="softmax") if softmax else mx.sym.make_loss(each)
    )
    variables = head.get_internals()
    l2_loss = mx.sym.zeros_like(mx.sym.sum(each))
    for plan in model.weighted_layers:
        if plan.l2:
            l2_loss = l2_loss + 0.5 * plan.l2 * mx.sym.sum(mx.sym.square(variables[kernel(plan)]))
    values = (mx.sym.mean(each) + l2_loss, l2_loss, _hits(outputs, label))
    row = mx.sym.concat(*(mx.sym.reshape(value, shape=(1,)) for value in values), dim=0)
    return mx.sym.Group([head, mx.sym.BlockGrad(row)])


def evaluation(loss: Loss, outputs: mx.sym.Symbol) -> mx.sym.Symbol:
    """Return the sum of the loss over a batch, and the number of correct predictions."""
    label = mx.sym.Variable(LABEL)
    return mx.sym.Group([mx.sym.sum(_each(loss, outputs, label)), _hits(outputs, label)])


def _each(loss: Loss | None, outputs: mx.sym.Symbol, label: mx.sym.Symbol) -> mx.sym.Symbol:
    """Return the loss of each example, ``[batch]``."""
    match loss:
        case None:
            return mx.sym.mean(outputs, axis=1)
        case NegativeLogLikelihood():
            return -mx.sym.pick(outputs, label)
        case SoftmaxCrossEntropy():
            return -mx.sym.pick(log_softmax(outputs), label)
        case ClippedCrossEntropy(epsilon):
            # Clipping log p equals clipping p, in value and gradient.
            true = mx.sym.pick(log_softmax(outputs), label)
            return -mx.sym.minimum(mx.sym.maximum(true, math.log(epsilon)), math.log1p(-epsilon))
        case TwoStageCrossEntropy():
            return -mx.sym.log(mx.sym.pick(mx.sym.softmax(outputs), label))
        case _:
            assert_never(loss)


def _hits(outputs: mx.sym.Symbol, label: mx.sym.Symbol) -> mx.sym.Symbol:
    return mx.sym.sum(mx.sym.broadcast_equal(mx.sym.argmax(outputs, axis=1), label))
