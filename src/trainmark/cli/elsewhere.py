"""Options and verbs that older versions or other tools have, and what to use instead."""

from __future__ import annotations

REMOVED = {
    "--max-restarts": "Use scale --resume, which repeats failed runs",
    "--until-stable": "Use --budget, such as --budget 300, and --margin",
    "--cloud": "Use --label, such as --label instance=g5.xlarge",
    "--link": "trainmark reports what it measured: run the layouts on that network (docs/scaling.md)",
    "--prediction": "trainmark reports what it measured: run the layouts (docs/scaling.md)",
    "completion": 'Use eval "$(_TRAINMARK_COMPLETE=bash_source trainmark)" (docs/install.md)',
    "container": "Build the CPU image in a clone: docker build -f docker/Dockerfile -t trainmark:cpu "
    "--build-arg TORCH_INDEX=URL . (docs/containers.md has the URL and the CUDA image)",
}
"""Options and verbs of version 0.1."""

_WORKLOAD = "It belongs to the workload: copy the workload's TOML file, change it, and run that (docs/workload-file.md)"
_RATE = f"{_WORKLOAD}, or try several: trainmark sweep WORKLOAD --grid learning_rate=0.1,0.01"
_BATCH = f"{_WORKLOAD}, or try several: trainmark sweep WORKLOAD --grid batch_size=64,128"
_WARM = "Not needed: compilation, the first epoch and the first steps of every slice are timed separately"
_VARY = "Use --vary, such as --vary workers=0,4"
ANSWERS = {
    "--warmup": _WARM,
    "--lr": _RATE,
    "--batch-size": _BATCH,
    "--optimizer": _WORKLOAD,
    "--min-runs": "Use --runs for complete trainings, and --budget for the seconds that the verdict may take",
    "--max-runs": "Use --runs for complete trainings, and --budget for the seconds that the verdict may take",
    "--prepare": "Put it into the command: trainmark measure -- sh -c 'prepare && python train.py'",
    "--shell": "Name the shell in the command: trainmark measure -- sh -c 'python train.py | tee log'",
    "--parameter-list": _VARY,
    "--show-output": "The output of a failed command is shown; its record keeps the last lines",
    "--gpu": "Use --device gpu",
    "--cpu": "Use --device cpu",
    "--gpus": "Use --device cuda:0,cuda:1 to compare them, or trainmark scale to train on several at once",
    "--amp": "Use --precision",
    "--fp16": "Use --precision",
    "--bf16": "Use --precision",
    "--model": "Name the workload: trainmark run mnist-cnn (`trainmark list workloads` shows them)",
    "--workload": "Name it without an option: trainmark run mnist-cnn",
    "--framework": "Use --backend, such as --backend torch,jax",
    "--output": "Use --out for the folder of the records, --export-json FILE for a table of the results",
    "bench": "Use run",
    "benchmark": "Use run",
    "time": "Use measure, such as trainmark measure -- python train.py",
    "diff": "Use compare",
    "check": "Use doctor",
    "train": "Use run",
    "--learning-rate": _RATE,
    "--batch": _BATCH,
    "--bs": _BATCH,
    "--warmup-rounds": _WARM,
    "-L": _VARY,
}
"""Options and verbs of other tools."""
