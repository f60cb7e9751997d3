"""The steps of a measured command.

The measured process reports them, too, so this module needs the standard library alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LOSS_DID_NOT_FALL = "its loss did not fall"
"""Why it is unknown whether a training learns that shows no sign of a GAN or an agent."""
IN_EVERY_STEP = 1 / 8
"""Evaluations a step from which they are a part of the steps; as the observer has it."""


@dataclass(frozen=True)
class Observed:
    """What an observer saw inside a measured command, without a change to its script.

    A step is a step of the first optimiser. Seconds are sums, null if unknown.

    Args:
        framework: ``torch``, ``keras`` or ``jax``.
        injected: what was observed; entries that failed begin with ``not``.
        steps: number of steps.
        seconds: duration of all steps but the first, without pauses and evaluation.
        examples_per_step: mean number of examples of a step.
        tokens_per_step: mean number of tokens of a step.
        loader_wait_seconds: waiting for data loaders.
        sync_seconds: waiting for tensors that the script itself reads, as with ``.item()``.
        copy_seconds: copying data to a device.
        forward_seconds: from a forward pass of the network, with gradients, to the backward pass;
            this includes the loss function. On a GPU, the time to queue them.
        backward_seconds: the backward pass; on a GPU, the time to queue it.
        optimizer_seconds: steps of the optimiser; on a GPU, the time to queue them.
        saving_seconds: saving files.
        evaluation_seconds: evaluation.
        evaluation_in_steps_seconds: the part of it that recurs every few steps, and is therefore a
            part of ``seconds``, too.
        no_grad_seconds: from forward passes without gradients in training mode to the next one with
            gradients; a part of the steps, as for an agent that collects what it learns from.
        compile_seconds: compiling after the first step, which JAX does when shapes change.
        between_seconds: from the end of a call of a jitted step to the next one, without
            evaluation and compiling; a part of the steps.
        step_compiles: how often the step was compiled after the first step.
        epochs: number of epochs whose end was seen; null with several trainings.
        planned_steps: number of steps of the whole training, if the framework knows it, as Keras's
            ``fit`` and Transformers' Trainer do; null with several trainings.
        evaluations: number of evaluations; null if no call of the network was seen.
        no_grad_passes: number of forward passes without gradients that may be a part of steps.
        saves: number of saved files.
        skipped: steps that a gradient scaler skipped.
        losses: of each of the first 2,000 steps, then of every hundredth; several losses of a step
            are added.
        places: file and line where the loader, the optimiser and the model are made, and of what
            happens in steps: loading, the forward and the backward pass, the step of the optimiser,
            the evaluation and the save.
        syncs: how often each line of the script read a tensor.
        step_reads: in how many steps each line read an array, outside of evaluations; of JAX alone.
        threads: CPU threads of the framework.
        precision: type of the weights, or that of autocast.
        device: device of the weights.
        ranks: number of processes that train together, of which this is the first; its examples
            alone are counted.
        device_peak_bytes: peak memory that the framework allocated on the device; null on a CPU or
            if unknown.
        changed: experiments that took effect, with the evidence.
        failed: experiments that could not be applied, with the reason.
        step_times: number, seconds and amount (elements of the network's input, or else examples)
            of the shortest step of each part of the training.
        step_memory: of some steps, the number, the private memory of the training process in bytes
            (shared with no file and no other process), and the bytes that the framework has
            allocated on the device; null if unknown.
        unknown: figures that are null, with the reason; ``learning`` if the loss does not show it.
        training_starts: number of steps before each training of this process, the first of which
            begins at 0. Steps, seconds and losses are those of all of them.
        ended_early: whether trainmark ended the training after its last slice or ``--steps``.
        own_epochs: whether the script reports its epochs itself, by the hook.
    """

    framework: str
    injected: tuple[str, ...]
    steps: int
    seconds: float
    examples_per_step: float | None = None
    tokens_per_step: float | None = None
    loader_wait_seconds: float | None = None
    sync_seconds: float | None = None
    copy_seconds: float | None = None
    forward_seconds: float | None = None
    backward_seconds: float | None = None
    optimizer_seconds: float | None = None
    saving_seconds: float | None = None
    evaluation_seconds: float | None = None
    evaluation_in_steps_seconds: float | None = None
    no_grad_seconds: float | None = None
    compile_seconds: float | None = None
    between_seconds: float | None = None
    step_compiles: int = 0
    epochs: int | None = None
    planned_steps: int | None = None
    evaluations: int | None = 0
    no_grad_passes: int = 0
    saves: int = 0
    skipped: int = 0
    losses: list[float] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    syncs: dict[str, int] = field(default_factory=dict)
    step_reads: dict[str, int] = field(default_factory=dict)
    threads: int | None = None
    precision: str | None = None
    device: str | None = None
    ranks: int = 1
    device_peak_bytes: int | None = None
    changed: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    step_times: tuple[tuple[float, ...], ...] = ()
    step_memory: tuple[tuple[float | None, ...], ...] = ()
    unknown: dict[str, str] = field(default_factory=dict)
    training_starts: tuple[int, ...] = (0,)
    ended_early: bool = False
    own_epochs: bool = False

    @property
    def all_seconds(self) -> float:
        """Duration of all steps but the first, and of evaluation."""
        evaluation = self.evaluation_seconds or 0.0
        return self.seconds + max(evaluation - (self.evaluation_in_steps_seconds or 0.0), 0.0)

    @property
    def on_gpu(self) -> bool:
        """Whether the weights are on a GPU; a CPU may have a number, as in ``cpu:0``."""
        return not (self.device or "cpu").startswith("cpu")
