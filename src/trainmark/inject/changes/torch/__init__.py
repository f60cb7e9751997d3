"""Changes to a PyTorch training."""

from .beside_steps import no_evaluation, no_grad, no_saves, no_sync
from .blocks import trials
from .facts import facts
from .loader import (
    batch,
    no_accumulation,
    no_workers,
    persistent_workers,
    pin,
    prefetch,
    same_batch,
    workers,
)
from .model import (
    attention,
    bf16,
    channels_last,
    compile,
    cuda_graphs,
    flush_denormal,
    fp16,
    fp32,
    tf32,
    threads,
)
from .optimizer import foreach, fused, torch_optimizer
from .switched_off import (
    no_anomaly,
    no_checkpointing,
    no_deterministic,
    no_empty_cache,
    no_gc,
    no_python_profiler,
    no_torch_profiler,
)
