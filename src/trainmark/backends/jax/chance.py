"""Random numbers for dropout, in the two forms that the styles use.

Both give a mask of 0 and ``1/(1 - rate)``, of the type of what it multiplies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

Shape = tuple[int, ...]
Masks = Callable[[int, Shape, float, Any], Array]
"""``(layer, shape, rate, dtype)`` to a mask; made anew for every step."""

_BITS = 16


def keyed(key: Array) -> Masks:
    """Masks as JAX's documentation draws them: split off a key for each layer, then Bernoulli."""

    def mask(layer: int, shape: Shape, rate: float, dtype: Any) -> Array:
        kept = jax.random.bernoulli(jax.random.fold_in(key, layer), 1 - rate, shape)
        return kept.astype(dtype) / (1 - rate)

    return mask


def counted(seed: int, step: Array) -> Masks:
    """Masks of hashed counters: no state, a handful of integer operations, melted into whatever uses them.

    The counter is mixed by the finaliser of MurmurHash3 (Appleby 2011), which lets every input bit change every output
    bit. 16 bits decide about a value, so the rate is met to 1/65,536; the scale uses the rate as it then is.
    """

    def mask(layer: int, shape: Shape, rate: float, dtype: Any) -> Array:
        dropped = round(rate * 2**_BITS)
        stream = _mixed(step.astype(jnp.uint32) + jnp.uint32((seed * 0x9E3779B1 + layer * 0x85EBCA77) % 2**32))
        counter = lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
        kept = (_mixed(counter ^ stream) >> (32 - _BITS)) >= dropped
        return jnp.where(kept, jnp.asarray(1 / (1 - dropped / 2**_BITS), dtype), jnp.asarray(0, dtype))

    return mask


def _mixed(bits: Array) -> Array:
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)
