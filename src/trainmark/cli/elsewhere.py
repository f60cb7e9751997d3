"""Options and verbs that older versions or other tools have, and what to use instead."""

from __future__ import annotations

REMOVED = {
    "--max-restarts": "Use scale --resume, which repeats failed runs",
    "--until-stable": "Use --budget, such as --budget 300, and --margin",
    "--cloud": "Use --label, such as --label instance=g5.xlarge",
    "--link": "trainmark reports what it measured: run the layouts on that network "
    "(docs/scaling.md)",
    "--prediction": "trainmark reports what it measured: run the layouts (docs/scaling.md)",
    "completion": 'Use eval "$(_TRAINMARK_COMPLETE=bash_source trainmark)" (docs/install.md)',
    "container": "Build the CPU image in a clone: docker build -f docker/Dockerfile "
    "-t trainmark:cpu --build-arg TORCH_INDEX=URL . (docs/containers.md has the URL and the CUDA "
    "image)",
}
"""Options and verbs of version 0.1."""

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
}
ANSWERS: dict[str, str] = {}
for _answer, _names in _BY_ANSWER.items():
    ANSWERS.update(dict.fromkeys(_names, _answer))
"""Options and verbs of other tools."""
