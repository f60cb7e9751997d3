"""What this machine gives at most, measured in separate turns among the others': matrix products
and copies.

The first turn tries every library and shape; later ones repeat the product that was fastest then. A
copy counts the bytes read and the bytes written, not what the cache reads of the target before.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from turns import Turns

SHAPES = ((2048, 2048, 2048), (1024, 1024, 1024), (8192, 512, 512))
COPIED_BYTES = 256 * 2**20  # it is far larger than any cache
REPEATS = 4


def products() -> dict[str, Callable[[], object]]:
    """float32 products by name, `LIBRARY ROWSxINNERxCOLUMNS`."""
    found: dict[str, Callable[[], object]] = {}
    rng = np.random.default_rng(0)
    for rows, inner, columns in SHAPES:
        a, b = (rng.random(shape, np.float32) for shape in ((rows, inner), (inner, columns)))
        shape = f"{rows}x{inner}x{columns}"
        found[f"numpy {shape}"] = partial(
            np.matmul, a, b, out=np.empty((rows, columns), np.float32)
        )
        if importlib.util.find_spec("torch"):
            import torch

            out = torch.empty(rows, columns)
            found[f"torch {shape}"] = partial(
                torch.mm, torch.from_numpy(a), torch.from_numpy(b), out=out
            )
        if importlib.util.find_spec("jax"):
            import jax

            product = jax.jit(jax.numpy.matmul)
            found[f"jax {shape}"] = partial(
                jax_product, product, jax.numpy.asarray(a), jax.numpy.asarray(b)
            )
    return found


def jax_product(product: Callable[..., object], a: object, b: object) -> None:
    product(a, b).block_until_ready()  # type: ignore[attr-defined]


def copies() -> dict[str, Callable[[], object]]:
    """Copies of a large array by library."""
    source = np.ones(COPIED_BYTES // 4, np.float32)
    target = np.zeros(COPIED_BYTES // 4, np.float32)
    found: dict[str, Callable[[], object]] = {"numpy": partial(np.copyto, target, source)}
    if importlib.util.find_spec("torch"):
        import torch

        found["torch"] = partial(torch.from_numpy(target).copy_, torch.from_numpy(source))
    return found


def flops(name: str) -> int:
    rows, inner, columns = map(int, name.split()[1].split("x"))
    return 2 * rows * inner * columns


def best_seconds(work: Callable[[], object]) -> float:
    work()  # this warms it up
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def fastest(rates: dict[str, float]) -> tuple[str, float]:
    return max(rates.items(), key=lambda item: item[1])


def main() -> None:
    turns = Turns()
    matmul = products()
    copy = copies()
    turns.versions(numpy=np.__version__)
    turns.epoch_done()
    for _ in range(turns.epochs - 1):
        by_product, flop_rate = fastest(
            {name: flops(name) / best_seconds(work) for name, work in matmul.items()}
        )
        by_copy, byte_rate = fastest(
            {name: 2 * COPIED_BYTES / best_seconds(work) for name, work in copy.items()}
        )
        matmul = {by_product: matmul[by_product]}
        copy = {by_copy: copy[by_copy]}
        turns.epoch_done(
            flops_per_second=flop_rate,
            bytes_per_second=byte_rate,
            product=f"{by_product} float32",
            copy=by_copy,
        )


if __name__ == "__main__":
    main()
