"""The experiments on a user's script, and the advice if they help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["change", "diagnosis", "learning"]
"""A ``change`` to make, a ``diagnosis``, which is not a valid training, or one that affects ``learning``."""
Part = Literal["loader", "sync", "evaluation", "save", "optimizer", "threads", "precision", "model"]


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Args:
        part: the part of the script that it is about.
        does: what it changes, for the table.
        advice: what to do if it helps.
    """

    kind: Kind
    part: Part
    does: str
    advice: str


EXPERIMENTS = {
    "same-batch": Experiment(
        "diagnosis",
        "loader",
        "the first batch again, without loading",
        "Make loading faster: prepare the data once, in advance, or load in more worker processes.",
    ),
    "no-evaluation": Experiment(
        "diagnosis", "evaluation", "without evaluation", "Evaluate less often, or on fewer examples."
    ),
    "no-saves": Experiment("diagnosis", "save", "without saving", "Save checkpoints less often."),
    "no-sync": Experiment(
        "diagnosis",
        "sync",
        "old values instead of new results",
        "Read results less often, for example .item() every 100 steps.",
    ),
    "torch-optimizer": Experiment(
        "change",
        "optimizer",
        "a fused PyTorch optimiser with as much state",
        "Use a fused torch.optim optimiser instead of a hand-written one.",
    ),
    "fp32": Experiment(
        "change",
        "precision",
        "single precision instead of double",
        "Use single precision: no float64 inputs, .double() or set_default_dtype(torch.float64).",
    ),
    "fused": Experiment(
        "change", "optimizer", "the optimiser's fused implementation", "Pass fused=True to the optimiser."
    ),
    "threads": Experiment(
        "change",
        "threads",
        "torch.set_num_threads({value})",
        "Change the number of threads: torch.set_num_threads({value}).",
    ),
    "no-grad": Experiment(
        "change",
        "evaluation",
        "evaluation without gradients",
        "Evaluate under torch.no_grad() or torch.inference_mode().",
    ),
    "workers": Experiment(
        "change",
        "loader",
        "batches from worker processes",
        "Load batches in worker processes: DataLoader(..., num_workers={value}, persistent_workers=True).",
    ),
    "batch": Experiment(
        "learning",
        "loader",
        "batches {value} times as large",
        "Use larger batches ({value} times as large here), and tune the learning rate.",
    ),
    "bf16": Experiment(
        "change", "precision", "bf16 autocast", "Run the model under torch.autocast(device, torch.bfloat16)."
    ),
    "foreach": Experiment(
        "change", "optimizer", "the optimiser's foreach implementation", "Pass foreach=True to the optimiser."
    ),
    "channels-last": Experiment(
        "change",
        "model",
        "images in channels-last format",
        "Use model.to(memory_format=torch.channels_last), and convert the images the same way.",
    ),
    "prefetch": Experiment(
        "change",
        "loader",
        "the next batch is fetched during a step",
        "Fetch the next batch during a step, in a thread or with num_workers=1.",
    ),
    "pin": Experiment(
        "change",
        "loader",
        "copies from pinned memory",
        "Copy from pinned memory: DataLoader(..., pin_memory=True) and .to(device, non_blocking=True).",
    ),
    "tf32": Experiment(
        "change", "precision", "TF32 matrix products", 'Set torch.set_float32_matmul_precision("high").'
    ),
    "fp16": Experiment(
        "change",
        "precision",
        "fp16 autocast, without a scaler",
        "Run the model under torch.autocast(device, torch.float16), with a GradScaler.",
    ),
    "steps-per-execution": Experiment(
        "change",
        "loader",
        "{value} steps per call",
        "Run {value} steps per call: model.compile(..., steps_per_execution={value}).",
    ),
    "jit": Experiment("change", "model", "XLA on if it is off, and vice versa", "Invert jit_compile in model.compile."),
    "mixed-bf16": Experiment(
        "change",
        "precision",
        "mixed precision (bf16)",
        'Set keras.mixed_precision.set_global_policy("mixed_bfloat16").',
    ),
    "compile": Experiment("change", "model", "a compiled model", "Compile the model: torch.compile(model)."),
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
