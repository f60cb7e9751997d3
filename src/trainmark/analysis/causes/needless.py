"""Work that each step does for nothing, or more often than it needs to."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from trainmark.analysis.causes.cause import Cause, Evidence, Found, InKnownFunctions

_LEAST_SHARE = 0.05
"""Smallest share of the time that is worth naming."""
_OFTEN = 0.5
"""Calls in each step from which on something happens in about every step."""


class NeedlessCalls(Cause):
    """A function is called in about every step that need not be."""

    function: ClassVar[str]
    seen: ClassVar[str]

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if the calls are often, and take long."""
        calls = evidence.calls(self.function)
        if calls is None or calls.per_step < _OFTEN or calls.share < _LEAST_SHARE:
            return None
        return self.found(self.seen, next(iter(calls.places), None), calls.share)


class GarbageCollection(NeedlessCalls):
    """Python's objects are searched for garbage in each step."""

    name = "garbage-collection"
    function = "collect"
    seen = "gc.collect() searches all Python objects in every step"
    cure = "Call it once per epoch, or not at all"
    source = "https://github.com/huggingface/peft/pull/2894"
    changes = ("no-gc",)


class EmptyCache(NeedlessCalls):
    """GPU memory is returned and allocated again in each step."""

    name = "empty-cache"
    function = "empty_cache"
    seen = "torch.cuda.empty_cache() returns the memory in every step"
    cure = "Call it rarely, or not at all"
    source = "https://github.com/huggingface/transformers/issues/31372"
    changes = ("no-empty-cache",)


class PredictInLoop(Cause):
    """Keras prepares a loop over batches for each call of ``predict``."""

    name = "predict-in-loop"
    cure = "Call the model itself, model(x, training=False), for a single batch"
    source = "https://keras.io/api/models/model_training_apis"
    changes = ("direct-call",)

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if there are several calls a step, or long ones."""
        calls = evidence.calls("predict")
        if calls is None or calls.per_step < _OFTEN or calls.share < _LEAST_SHARE:
            return None
        times = f"{calls.usual} times" if calls.usual > 1 else "once"
        lines = " and ".join(calls.places[1:])
        also = f", also in {lines}," if lines else ""
        found = self.found(
            f"model.predict(){also} is called {times} in each step",
            next(iter(calls.places), None),
            calls.share,
        )
        return dataclasses.replace(found, further=calls.places[1:])


class Checkpointing(InKnownFunctions):
    """Activations are computed again in the backward pass."""

    name = "activation-checkpointing"
    functions = ("recomputing",)
    seen = "Activations are computed twice, to save memory"
    cure = "Turn activation checkpointing off if there is memory for it"
    source = "https://huggingface.co/docs/transformers/en/grad_checkpointing"
    changes = ("no-checkpointing",)

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause with the lines that keep no activations."""
        found = super().find(evidence)
        calls = evidence.calls("checkpoint")
        if found is None or calls is None or not calls.places:
            return found
        return dataclasses.replace(found, place=calls.places[0], further=calls.places[1:])


class CopiesOfWeights(InKnownFunctions):
    """Objects are copied by ``copy.deepcopy``."""

    name = "copies"
    functions = ("copy",)
    seen = "copy.deepcopy() copies objects again and again"
    cure = "Copy them only when they are needed"
    source = "https://github.com/OpenNMT/OpenNMT-py/pull/1623"


class TensorBoard(InKnownFunctions):
    """TensorBoard gets something in most steps."""

    name = "tensorboard"
    functions = ("TensorBoard",)
    seen = "Writing to TensorBoard takes long"
    cure = "Write every 100 steps, and histograms once per epoch"
    source = "https://github.com/sherjilozair/char-rnn-tensorflow/issues/112"


class WeightsAndBiases(InKnownFunctions):
    """Weights & Biases gets something in most steps."""

    name = "wandb"
    functions = ("Weights & Biases",)
    seen = "Logging to Weights & Biases takes long"
    cure = "Log every 100 steps, and watch() with a larger log_freq"
    source = "https://github.com/wandb/wandb/issues/2268"


class Logging(InKnownFunctions):
    """Python's logging formats and writes something in most steps."""

    name = "logging"
    functions = ("logging",)
    seen = "Logging takes long"
    cure = "Log every 100 steps"
    source = "https://github.com/meta-pytorch/torchtune/pull/522"


class ProgressBar(InKnownFunctions):
    """A progress bar is drawn again in most steps."""

    name = "progress-bar"
    functions = ("progress bar",)
    seen = "Drawing the progress bar takes long"
    cure = "Give tqdm a larger mininterval, and set_postfix() refresh=False"
    source = "https://tqdm.github.io/docs/tqdm"


class Plots(InKnownFunctions):
    """Matplotlib draws during the training."""

    name = "plots"
    functions = ("plots",)
    seen = "Drawing with Matplotlib takes long"
    cure = "Draw at the end of an epoch, and close each figure"
    source = "https://github.com/mit-han-lab/gan-compression/issues/47"


class LibraryMetrics(InKnownFunctions):
    """A library computes metrics during the training."""

    name = "metrics"
    functions = ("metrics of TorchMetrics", "metrics of scikit-learn")
    seen = "Computing metrics takes long"
    cure = "Only update counts in the step, and compute the metrics once per epoch"
    source = "https://github.com/Lightning-AI/torchmetrics/issues/1217"


class LongPart(Cause):
    """A part of the training takes a large share of its time."""

    seen: ClassVar[str]
    sampled: ClassVar[str]
    """Name of the part among those that were sampled."""
    least: ClassVar[float] = 0.1
    fewest: ClassVar[int] = 3
    """Fewest times that it was seen: the samples may have ended right after it."""

    def times(self, evidence: Evidence) -> int:
        """Return how often the part was seen."""
        raise NotImplementedError

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if the part takes long, and recurs."""
        share = evidence.of_part(self.sampled)
        if share < self.least or self.times(evidence) < self.fewest:
            return None
        return self.found(self.seen, evidence.observed.places.get(self.part or ""), share)


class Evaluation(LongPart):
    """The network is evaluated often, or on much data."""

    name = "evaluation"
    part = "evaluation"
    sampled = "evaluation"
    seen = "Evaluation takes long"
    cure = "Evaluate less often, or on fewer examples"
    source = "https://github.com/isl-org/Open3D-ML/pull/385"
    changes = ("no-evaluation",)

    def times(self, evidence: Evidence) -> int:
        """Return the number of evaluations."""
        return evidence.observed.evaluations or 0


class Saving(LongPart):
    """Checkpoints are saved often."""

    name = "saving"
    part = "save"
    sampled = "saving"
    seen = "Saving checkpoints takes long"
    cure = "Save checkpoints less often"
    source = "https://github.com/deepchem/deepchem/issues/458"
    changes = ("no-saves",)

    def times(self, evidence: Evidence) -> int:
        """Return the number of saved files."""
        return evidence.observed.saves


class Recompiling(InKnownFunctions):
    """torch.compile compiles during the training."""

    name = "recompiling"
    functions = ("compiling",)
    in_the_end = True
    seen = "torch.compile compiles while the script trains"
    cure = (
        "Look for compilations with TORCH_LOGS=recompiles; pad inputs to a few shapes, or use "
        "dynamic=True"
    )
    source = (
        "https://docs.pytorch.org/docs/2.12/user_guide/torch_compiler/compile/"
        "programming_model.recompilation.html"
    )


CAUSES = (
    GarbageCollection,
    EmptyCache,
    PredictInLoop,
    Checkpointing,
    CopiesOfWeights,
    TensorBoard,
    WeightsAndBiases,
    Logging,
    ProgressBar,
    Plots,
    LibraryMetrics,
    Evaluation,
    Saving,
    Recompiling,
)
