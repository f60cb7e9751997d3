"""Options and verbs of other tools, and what to use instead."""

from __future__ import annotations

_COPY = (
    "It belongs to the workload: copy the workload's TOML file, change it, and run that "
    "(docs/workload-file.md)"
)
_BY_ANSWER = {
    _COPY: ("--optimizer",),
    f"{_COPY}, or try several: trainmark sweep WORKLOAD --grid learning_rate=0.1,0.01": (
        "--lr",
        "--learning-rate",
    ),
    f"{_COPY}, or try several: trainmark sweep WORKLOAD --grid batch_size=64,128": (
        "--batch-size",
        "--batch",
        "--bs",
    ),
    "Not needed: compilation and the first steps are timed separately": (
        "--warmup",
        "--warmup-rounds",
    ),
    "Use --runs for complete trainings, --budget for the verdict's seconds": (
        "--min-runs",
        "--max-runs",
    ),
    "Put it into the command: trainmark measure -- sh -c 'prepare && python train.py'": (
        "--prepare",
    ),
    "Name the shell in the command: trainmark measure -- sh -c 'python train.py | tee log'": (
        "--shell",
    ),
    "Use --vary, such as --vary workers=0,4": ("--parameter-list", "-L"),
    "The output of a failed command is shown; its record keeps the last lines": ("--show-output",),
    "It is about your own script: trainmark measure --metric NAME -- python train.py": (
        "--metric",
        "--lower-is-better",
        "--higher-is-better",
    ),
    "Use --device gpu": ("--gpu",),
    "Use --device cpu": ("--cpu",),
    "Use --device cuda:0,cuda:1 to compare them, or trainmark scale to train on several at once": (
        "--gpus",
    ),
    "Use --precision": ("--amp", "--fp16", "--bf16"),
    "Name the workload: trainmark run mnist-cnn (`trainmark list workloads` shows them)": (
        "--model",
        "--workload",
    ),
    "Use --backend, such as --backend torch,jax": ("--framework",),
    "Use --out for the folder of the records, --export-json FILE for a table of the results": (
        "--output",
    ),
    "Use run": ("bench", "benchmark", "train"),
    "Use measure, such as trainmark measure -- python train.py": ("time",),
    "Use compare": ("diff",),
    "Use doctor": ("check",),
    'Use eval "$(_TRAINMARK_COMPLETE=bash_source trainmark)" (docs/install.md)': ("completion",),
}
ANSWERS: dict[str, str] = {}
for _answer, _names in _BY_ANSWER.items():
    ANSWERS.update(dict.fromkeys(_names, _answer))
"""Options and verbs of other tools."""
