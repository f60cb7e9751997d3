"""Products with a long batch, in blocks of rows.

The library that PyTorch multiplies with on a CPU takes a long thin matrix as a whole, and streams it through the cache
more than once. As a batch of short products, each thread keeps its block: a third quicker (docs/performance.md).
"""

from __future__ import annotations

import torch
from torch import Tensor

SHORT_BLOCK = 2**20
"""Bytes of ``x`` in a block. Chosen on two cores with 1 MiB of second-level cache each; half and twice did as well."""

LONG_BLOCK = 2**22
"""The same where each block leaves a whole sum behind, so that few are better."""

LEAST_ROWS = 256
"""Of a block: a shorter one would read the kernel for too little work."""


def rows_times(x: Tensor, kernel: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ kernel + bias`` for ``x`` ``[batch, in]`` and ``kernel`` ``[in, out]``."""
    blocks, rows, whole = _blocks(x, SHORT_BLOCK, LEAST_ROWS)
    if blocks < 2:
        return x @ kernel if bias is None else torch.addmm(bias, x, kernel)
    y = x.new_empty(len(x), kernel.shape[1])
    kernel = kernel.contiguous()  # many rows earn the copy
    torch.bmm(
        x[:whole].view(blocks, rows, -1), kernel.expand(blocks, *kernel.shape), out=y[:whole].view(blocks, rows, -1)
    )
    torch.mm(x[whole:], kernel, out=y[whole:])
    return y if bias is None else y.add_(bias)


def sum_over_rows(left: Tensor, x: Tensor) -> Tensor:
    """``left.t() @ x`` for ``left`` ``[batch, out]`` and ``x`` ``[batch, in]``."""
    blocks, rows, whole = _blocks(x, LONG_BLOCK, max(LEAST_ROWS, 4 * left.shape[1]))
    if blocks < 2:
        return left.t() @ x
    parts = torch.bmm(left[:whole].view(blocks, rows, -1).transpose(1, 2), x[:whole].view(blocks, rows, -1))
    return parts.sum(0).addmm_(left[whole:].t(), x[whole:])


def _blocks(x: Tensor, size: int, least_rows: int) -> tuple[int, int, int]:
    """How many blocks, as many for every thread, the rows of one, and the rows of all; a few are left over."""
    threads = torch.get_num_threads()
    wanted = -(-x.numel() * x.element_size() // size)
    if wanted > 1:
        wanted = min(-(-wanted // threads), len(x) // (least_rows * threads)) * threads
    blocks = max(wanted, 1)
    rows = len(x) // blocks
    return blocks, rows, blocks * rows
