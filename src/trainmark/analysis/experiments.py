"""The experiments on a user's script, and the advice if they help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["change", "diagnosis", "learning"]
"""Whether an experiment is a ``change`` to make, or affects ``learning``.

A ``diagnosis`` is not a valid training.
"""
NOT_ENOUGH_TIME = "not enough time"
"""Why an experiment was left out; begins the reason."""
NO_GAIN = "no gain in short trials within one process"
"""Why an experiment got no separate process; begins the reason."""
ScriptPart = Literal[
    "loader",
    "sync",
    "evaluation",
    "save",
    "optimizer",
    "threads",
    "precision",
    "model",
    "line",
    "step",
    "switch",
]


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Args:
        part: the part of the script that it is about.
        does: what it changes, for the table.
        advice: what to do if it helps.
    """

    part: ScriptPart
    does: str
    advice: str
    kind: Kind = "change"


EXPERIMENTS = {
    "no-anomaly": Experiment(
        "switch",
        "without anomaly detection",
        "Turn anomaly detection off: it is meant for debugging.",
    ),
    "no-deterministic": Experiment(
        "switch",
        "algorithms whose results differ from run to run",
        "Turn deterministic algorithms off where runs need not repeat each other bit by bit.",
    ),
    "flush-denormal": Experiment(
        "switch",
        "denormal numbers treated as zero",
        "Call torch.set_flush_denormal(True) before anything is computed.",
    ),
    "no-torch-profiler": Experiment(
        "switch",
        "without PyTorch's profiler",
        "Remove PyTorch's profiler, or give it a schedule of a few steps.",
    ),
    "no-python-profiler": Experiment(
        "switch", "without Python's profiler", "Train without Python's profiler."
    ),
    "no-gc": Experiment(
        "switch", "without gc.collect()", "Call gc.collect() once per epoch, or not at all."
    ),
    "no-empty-cache": Experiment(
        "switch",
        "without torch.cuda.empty_cache()",
        "Call torch.cuda.empty_cache() rarely, or not at all.",
    ),
    "no-eager": Experiment(
        "switch", "compiled steps", "Remove run_eagerly=True: it is meant for debugging."
    ),
    "direct-call": Experiment(
        "switch",
        "the model called instead of predict()",
        "Call the model itself, model(x, training=False), instead of predict() for a single batch.",
    ),
    "no-debug-nans": Experiment(
        "switch", "without NaN checks", "Turn jax_debug_nans off: it is meant for debugging."
    ),
    "no-disable-jit": Experiment(
        "switch", "with jit turned on", "Turn jax_disable_jit off: it is meant for debugging."
    ),
    "jit-once": Experiment(
        "step",
        "each function jitted once",
        "Call jax.jit once, outside of the loop: each new function is compiled again.",
    ),
    "no-checkpointing": Experiment(
        "switch",
        "activations kept instead of computed twice",
        "Turn activation checkpointing off if there is memory for it.",
    ),
    "persistent-workers": Experiment(
        "loader",
        "worker processes kept from epoch to epoch",
        "Keep the loader's processes: DataLoader(..., persistent_workers=True).",
    ),
    "no-workers": Experiment(
        "loader",
        "loading in the training process",
        "Load batches in the training process: DataLoader(..., num_workers=0).",
    ),
    "same-batch": Experiment(
        "loader",
        "the first batch in every step, without loading",
        "Speed up loading.",
        "diagnosis",
    ),
    "no-evaluation": Experiment(
        "evaluation", "no evaluation", "Evaluate less often, or on fewer examples.", "diagnosis"
    ),
    "no-saves": Experiment("save", "no saving", "Save checkpoints less often.", "diagnosis"),
    "no-sync": Experiment(
        "sync",
        "old values instead of reading results",
        "Read results less often, for example .item() every 100 steps.",
        "diagnosis",
    ),
    "line": Experiment(
        "line",
        "this code removed, estimated from samples",
        "Speed up this code.",
        "diagnosis",
    ),
    "torch-optimizer": Experiment(
        "optimizer",
        "PyTorch's fused optimiser with the same amount of state",
        "Replace the custom optimiser with a fused one from torch.optim.",
    ),
    "fp32": Experiment(
        "precision",
        "single instead of double precision",
        "Use single precision: avoid float64 inputs, .double() and "
        "set_default_dtype(torch.float64).",
    ),
    "fused": Experiment("optimizer", "the fused optimiser", "Pass fused=True to the optimiser."),
    "threads": Experiment(
        "threads", "torch.set_num_threads({value})", "Call torch.set_num_threads({value})."
    ),
    "no-grad": Experiment(
        "evaluation", "evaluation without gradients", "Evaluate under torch.inference_mode()."
    ),
    "batch": Experiment(
        "loader",
        "{value}× larger batches",
        "Use larger batches ({value}× here), and retune the learning rate.",
        "learning",
    ),
    "workers": Experiment(
        "loader",
        "loading in worker processes",
        "Load batches in worker processes: DataLoader(..., num_workers={value}, "
        "persistent_workers=True).",
    ),
    "no-accumulation": Experiment(
        "loader",
        "one large batch instead of {value} accumulated ones",
        "Use {value}× larger batches instead of accumulating gradients.",
    ),
    "bf16": Experiment(
        "precision", "bf16 autocast", "Run the model under torch.autocast(device, torch.bfloat16)."
    ),
    "foreach": Experiment(
        "optimizer", "the foreach optimiser", "Pass foreach=True to the optimiser."
    ),
    "channels-last": Experiment(
        "model",
        "images in channels-last format",
        "Use model.to(memory_format=torch.channels_last), and convert the images the same way.",
    ),
    "prefetch": Experiment(
        "loader",
        "next batch loaded during a step",
        "Load the next batch during a step, in a thread or with num_workers=1.",
    ),
    "pin": Experiment(
        "loader",
        "copies from pinned memory",
        "Copy from pinned memory: DataLoader(..., pin_memory=True) and .to(device, "
        "non_blocking=True).",
    ),
    "tf32": Experiment(
        "precision", "TF32 matrix products", 'Call torch.set_float32_matmul_precision("high").'
    ),
    "fp16": Experiment(
        "precision",
        "fp16 autocast without a GradScaler",
        "Run the model under torch.autocast(device, torch.float16), with a GradScaler.",
    ),
    "steps-per-execution": Experiment(
        "loader", "{value} steps per call", "Use model.compile(..., steps_per_execution={value})."
    ),
    "jit": Experiment("model", "XLA toggled", "Toggle jit_compile in model.compile."),
    "mixed-bf16": Experiment(
        "precision",
        "mixed precision (bf16)",
        'Call keras.mixed_precision.set_global_policy("mixed_bfloat16").',
    ),
    "donate": Experiment(
        "step",
        "arguments donated, so that results reuse their memory",
        "Donate the arguments that the step replaces by its results, if nothing reads them "
        "afterwards: jax.jit(..., donate_argnums=...).",
    ),
    "attention": Experiment(
        "model",
        "fused attention",
        "Use fused attention: need_weights=False in nn.MultiheadAttention, or "
        'attn_implementation="sdpa".',
    ),
    "compile": Experiment("model", "compiled model", "Compile the model: torch.compile(model)."),
    "cuda-graphs": Experiment(
        "model",
        "compiled model with CUDA graphs",
        'Use torch.compile(model, mode="reduce-overhead").',
    ),
}
"""Experiments by name. If there is no time for all of them, the last ones are left out. Changes to
a slow part come first."""
CURES_OF_KERAS = ("no-eager", "direct-call")
CURES_OF_JAX = ("no-debug-nans", "no-disable-jit", "jit-once")
OF_CAUSES = (
    "no-anomaly",
    "no-deterministic",
    "flush-denormal",
    "no-torch-profiler",
    "no-python-profiler",
    "no-gc",
    "no-empty-cache",
    "no-checkpointing",
    "persistent-workers",
    "no-workers",
    *CURES_OF_KERAS,
    *CURES_OF_JAX,
)
"""Experiments that are tried only if there is evidence of what they cure."""
SWITCHABLE = (
    "no-anomaly",
    "no-gc",
    "no-sync",
    "same-batch",
    "tf32",
    "threads",
    "fused",
    "foreach",
    "bf16",
    "no-empty-cache",
    "no-checkpointing",
    "fp16",
)
"""Experiments that can be switched between two steps of PyTorch. Those that may crash the script
come last."""
ONLY_KERAS = ("steps-per-execution", "jit", "mixed-bf16")
OF_KERAS = ("same-batch", "no-saves", "fp32", *ONLY_KERAS)
ONLY_JAX = ("donate",)
OF_JAX = ("no-sync", *ONLY_JAX)


def experiment(change: str) -> Experiment:
    """Return the experiment of a change such as ``workers=2``."""
    return EXPERIMENTS[change.partition("=")[0]]


def words(template: str, change: str) -> str:
    """Fill the value of a change such as ``workers=2`` into a text of its experiment."""
    return template.replace("{value}", change.partition("=")[2])
