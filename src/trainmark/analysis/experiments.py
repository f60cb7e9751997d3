"""The experiments on a user's script, and the advice if they help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["change", "diagnosis", "learning"]
"""A ``change`` to make, a ``diagnosis``, which is not a valid training, or one that affects ``learning``."""
Part = Literal["loader", "sync", "evaluation", "save", "optimizer", "threads", "precision", "model", "line"]


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Args:
        part: the part of the script that it is about.
        does: what it changes, for the table.
        advice: what to do if it helps.
    """

    part: Part
    does: str
    advice: str
    kind: Kind = "change"


EXPERIMENTS = {
    "same-batch": Experiment(
        "loader",
        "the first batch again, without loading",
        "Make loading faster: prepare the data once, in advance, or load in more worker processes.",
        "diagnosis",
    ),
    "no-evaluation": Experiment(
        "evaluation", "without evaluation", "Evaluate less often, or on fewer examples.", "diagnosis"
    ),
    "no-saves": Experiment("save", "without saving", "Save checkpoints less often.", "diagnosis"),
    "no-sync": Experiment(
        "sync",
        "old values instead of new results",
        "Read results less often, such as .item() every 100 steps.",
        "diagnosis",
    ),
    "line": Experiment(
        "line",
        "without this code, by its share of samples",
        "Make this code faster, or move it out of the step.",
        "diagnosis",
    ),
    "torch-optimizer": Experiment(
        "optimizer", "a fused PyTorch optimiser with as much state", "Use a fused torch.optim optimiser instead."
    ),
    "fp32": Experiment(
        "precision",
        "single precision instead of double",
        "Use single precision: no float64 inputs, .double() or set_default_dtype(torch.float64).",
    ),
    "fused": Experiment("optimizer", "the optimiser's fused implementation", "Pass fused=True to the optimiser."),
    "threads": Experiment("threads", "torch.set_num_threads({value})", "Use torch.set_num_threads({value})."),
    "no-grad": Experiment("evaluation", "evaluation without gradients", "Evaluate under torch.inference_mode()."),
    "workers": Experiment(
        "loader",
        "batches from worker processes",
        "Load batches in worker processes: DataLoader(..., num_workers={value}, persistent_workers=True).",
    ),
    "batch": Experiment(
        "loader",
        "batches {value} times as large",
        "Use larger batches ({value} times as large here), and tune the learning rate.",
        "learning",
    ),
    "no-accumulation": Experiment(
        "loader",
        "one batch instead of {value} that are accumulated",
        "Use batches {value} times as large instead of accumulating gradients.",
    ),
    "bf16": Experiment("precision", "bf16 autocast", "Run the model under torch.autocast(device, torch.bfloat16)."),
    "foreach": Experiment("optimizer", "the optimiser's foreach implementation", "Pass foreach=True to the optimiser."),
    "channels-last": Experiment(
        "model",
        "images in channels-last format",
        "Use model.to(memory_format=torch.channels_last), and convert the images the same way.",
    ),
    "prefetch": Experiment(
        "loader", "the next batch is fetched during a step", "Fetch the next batch in a thread or with num_workers=1."
    ),
    "pin": Experiment(
        "loader",
        "copies from pinned memory",
        "Copy from pinned memory: DataLoader(..., pin_memory=True) and .to(device, non_blocking=True).",
    ),
    "tf32": Experiment("precision", "TF32 matrix products", 'Set torch.set_float32_matmul_precision("high").'),
    "fp16": Experiment(
        "precision",
        "fp16 autocast, without a scaler",
        "Run the model under torch.autocast(device, torch.float16), with a GradScaler.",
    ),
    "steps-per-execution": Experiment(
        "loader", "{value} steps per call", "Use model.compile(..., steps_per_execution={value})."
    ),
    "jit": Experiment("model", "XLA on if it is off, and vice versa", "Invert jit_compile in model.compile."),
    "mixed-bf16": Experiment(
        "precision", "mixed precision (bf16)", 'Set keras.mixed_precision.set_global_policy("mixed_bfloat16").'
    ),
    "attention": Experiment(
        "model",
        "fused attention",
        'Use fused attention: need_weights=False in nn.MultiheadAttention, or attn_implementation="sdpa".',
    ),
    "compile": Experiment("model", "a compiled model", "Compile the model: torch.compile(model)."),
    "cuda-graphs": Experiment(
        "model", "a compiled model with CUDA graphs", 'Use torch.compile(model, mode="reduce-overhead").'
    ),
}
"""By name; if there is no time for all, those at the end are left out."""
ONLY_KERAS = ("steps-per-execution", "jit", "mixed-bf16")
OF_KERAS = ("same-batch", "no-saves", "fp32", *ONLY_KERAS)


def experiment(change: str) -> Experiment:
    """Return the experiment of a change such as ``workers=2``."""
    return EXPERIMENTS[change.partition("=")[0]]


def words(template: str, change: str) -> str:
    """Fill the value of a change such as ``workers=2`` into a text of its experiment."""
    return template.replace("{value}", change.partition("=")[2])
