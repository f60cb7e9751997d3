"""How weights of JAX differ: from a step to the next one, and from a training to another one."""

from __future__ import annotations

from typing import Any

from .calls import is_float

_MOST_COMPARED_BYTES = 1 << 28
"""Most bytes of a call's results that are compared with what it was given."""
_MOST_MOVE = 0.5
"""Largest change of weights in a step, as a multiple of their norm. Batches differ by more."""
_MOST_COPIED = 64
"""Most arrays that are copied to the host when a training begins."""
_MOST_KEPT_SIZE = 1 << 14
"""Most elements of each of them."""
_ENOUGH = 100
"""Fewest elements from which weights that were drawn independently surely look so."""
_UNLIKE = 0.3
"""Correlation below which two arrays of weights do not come from each other."""


def any_changed(pairs: list[tuple[Any, Any]]) -> bool:
    """Whether any array differs from the one that a step has made of it."""
    if any(before.is_deleted() for before, _ in pairs):  # it was donated, to be changed
        return True
    left = _MOST_COMPARED_BYTES
    for before, after in sorted(pairs, key=_size_of_first):
        left -= before.nbytes
        if left < 0 or not before.is_fully_addressable:
            return True
        if _differ(before, after):
            return True
    return False


def state_changed(pairs: list[tuple[Any, Any]], unchanged: int) -> bool:
    """Whether a call that computes no gradients has changed weights.

    Evaluations are often given weights and metrics, and return both; then the weights are the
    same, and the metrics have fewer dimensions.

    Args:
        pairs: arrays that were given, and what was returned for them.
        unchanged: number of other arrays that were given again, unchanged.
    """
    if any(before.is_deleted() for before, _ in pairs):
        return True
    pairs = sorted(pairs, key=_dimensions_and_size)
    left = _MOST_COMPARED_BYTES
    for before, after in pairs:
        left -= before.nbytes
        if left < 0 or not before.is_fully_addressable:
            return True
        if _differ(before, after):
            return before.ndim > 1 or not unchanged
        unchanged += before.ndim > 0
    return False


def has_moved(before: list[Any], after: list[Any]) -> bool:
    """Whether weights have moved as far as in a step: a little, and not by nothing."""
    moved = 0.0
    whole = 0.0
    for one, other in zip(before, after):  # noqa: B905  (Python 3.8)
        if one.shape != other.shape:
            return False
        moved += float(((other - one).astype("float64") ** 2).sum())
        whole += float((one.astype("float64") ** 2).sum())
    return 0.0 < moved < _MOST_MOVE**2 * whole


def copies_to_recognise(leaves: list[Any]) -> dict[int, Any]:
    """Return copies of the small arrays of a call, by their positions.

    A training is recognised by some of them; which of them are weights shows later.
    """
    small = [
        position
        for position, each in enumerate(leaves)
        if is_float(each) and each.ndim > 0 and 0 < each.size <= _MOST_KEPT_SIZE
    ]
    return {at: copied(leaves[at]) for at in small[:_MOST_COPIED] if is_readable(leaves[at])}


def is_readable(array: Any) -> bool:
    """Whether this process can read the values; arrays of NumPy always can be."""
    if not hasattr(array, "is_deleted"):
        return hasattr(array, "ndim")
    return not array.is_deleted() and bool(array.is_fully_addressable)


def copied(array: Any) -> Any:
    """Return a copy on the host, which does not keep the array itself."""
    return getattr(array, "_value", array).copy()


def begins_anew(first: list[Any], last: list[Any], given: list[Any]) -> bool:
    """Whether given weights are neither the last ones nor come from them.

    All three are lists of NumPy's arrays. Weights that are as they were first, or that are not
    correlated with any earlier ones, begin a training. Averages and copies are correlated.

    Args:
        first: the weights that the training began with.
        last: those of its last step.
        given: those that the next step is given.
    """
    drawn: list[tuple[Any, Any, Any]] = []
    changed = 0
    for start, end, now in zip(first, last, given):  # noqa: B905  (Python 3.8)
        if start.shape != now.shape or end.shape != now.shape:
            return False
        if (start == end).all():  # it is frozen, which tells nothing
            continue
        changed += 1
        if not (start == now).all():
            drawn.append((start, end, now))
    if not changed:
        return False
    for start, end, now in drawn:  # a single layer may have been drawn anew
        if now.size >= _ENOUGH and not (_unlike([now], [end]) and _unlike([now], [start])):
            return False
    starts = [start for start, _, _ in drawn]
    ends = [end for _, end, _ in drawn]
    all_now = [now for _, _, now in drawn]
    return not drawn or (_unlike(all_now, ends) and _unlike(all_now, starts))


def _unlike(these: list[Any], others: list[Any]) -> bool:
    """Whether two lists of arrays surely have nothing to do with each other."""
    if sum(each.size for each in these) < _ENOUGH:
        return False
    product = 0.0
    norm = 0.0
    other_norm = 0.0
    for one, other in zip(these, others):  # noqa: B905  (Python 3.8)
        one = one.astype("float64") - one.mean(dtype="float64")
        other = other.astype("float64") - other.mean(dtype="float64")
        product += float((one * other).sum())
        norm += float((one**2).sum())
        other_norm += float((other**2).sum())
    least: float = _UNLIKE * (norm * other_norm) ** 0.5
    return abs(product) < least


def _differ(before: Any, after: Any) -> bool:
    return before.shape != after.shape or bool((before._value != after._value).any())


def _size_of_first(pair: tuple[Any, Any]) -> int:
    size: int = pair[0].size
    return size


def _dimensions_and_size(pair: tuple[Any, Any]) -> tuple[int, int]:
    return -min(pair[0].ndim, 2), pair[0].size
