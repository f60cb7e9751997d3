"""What a sum over two of JAX's CPU devices costs inside a compiled loop, against the same sum called from Python.

    python bench/loop_sums.py

Two devices of one process, one thread each. A turn of the loop is a product (50 × 784 times 784 × 784) and a sum of
the gradients of mnist-mlp128, as nothing, as one number, as one array and as the six arrays that they are. In turns;
medians and quartiles of the rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

os.environ["XLA_FLAGS"] = (
    "--xla_force_host_platform_device_count=2 --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, PartitionSpec

ROUNDS, TURNS = 12, 200
SIX = ((784, 128), (128,), (128, 64), (64,), (64, 10), (10,))
ONE = ((sum(int(np.prod(shape)) for shape in SIX),),)
MESH = Mesh(np.array(jax.devices()), ("data",))


def shared(arrays: list[Array]) -> list[Array]:
    return lax.pmean(arrays, "data")


def kept(arrays: list[Array]) -> list[Array]:
    return arrays


def turn(
    x: Array, arrays: list[Array], weights: Array, share: Callable[[list[Array]], list[Array]]
) -> tuple[Array, list[Array]]:
    """A product, and a sum that has to wait for it and that the next product waits for."""
    x = jnp.tanh(x @ weights)
    arrays = share([array + x[0, 0] * 1e-6 for array in arrays])
    return x + arrays[0].ravel()[0] * 1e-9, arrays


def everywhere(function: Callable[..., object]) -> Callable[..., object]:
    here = PartitionSpec()
    return jax.jit(jax.shard_map(function, mesh=MESH, in_specs=here, out_specs=here, check_vma=False))


def in_a_loop(shapes: tuple[tuple[int, ...], ...], share: Callable[[list[Array]], list[Array]]) -> Callable[[], object]:
    """All turns in one compiled program."""

    def turns(x: Array, arrays: list[Array], weights: Array) -> object:
        return lax.scan(
            lambda carry, _: (turn(carry[0], carry[1], weights, share), None), (x, arrays), None, length=TURNS
        )[0]

    program, taken = everywhere(turns), start(shapes)
    return lambda: jax.block_until_ready(program(*taken))


def from_python(
    shapes: tuple[tuple[int, ...], ...], share: Callable[[list[Array]], list[Array]]
) -> Callable[[], object]:
    """Each turn called by itself, and waited for."""
    program = everywhere(lambda x, arrays, weights: turn(x, arrays, weights, share))
    x, arrays, weights = start(shapes)

    def turns() -> None:
        carry = (x, arrays)
        for _ in range(TURNS):
            carry = jax.block_until_ready(program(*carry, weights))

    return turns


def start(shapes: tuple[tuple[int, ...], ...]) -> tuple[Array, list[Array], Array]:
    return jnp.ones((50, 784)), [jnp.full(shape, 1e-3) for shape in shapes], jnp.full((784, 784), 1e-3)


def main() -> None:
    """Print a line for each case."""
    cases = {
        f"{how}, {what}": make(shapes, share)
        for how, make in (("in a compiled loop", in_a_loop), ("called from Python", from_python))
        for what, shapes, share in (
            ("no sum", SIX, kept),
            ("a sum of one number", ((1,),), shared),
            ("a sum of one array", ONE, shared),
            ("a sum of six arrays", SIX, shared),
        )
    }
    for run in cases.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, run in cases.items():
            begun = time.perf_counter()
            run()
            seconds[name].append((time.perf_counter() - begun) / TURNS)
    for name, found in seconds.items():
        low, middle, high = statistics.quantiles(found, n=4)
        print(f"{name}: {1e6 * middle:.0f} µs a turn [{1e6 * low:.0f}, {1e6 * high:.0f}]")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
