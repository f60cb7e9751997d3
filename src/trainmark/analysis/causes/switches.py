"""Switches of the whole process that were left on."""

from __future__ import annotations

from trainmark.analysis.causes.cause import Cause, Evidence, Found, SwitchOn
from trainmark.units import percent

_MANY_DENORMAL = 0.01
"""Share of denormal numbers from which on they are a cause."""
_JAX_FLAGS = "https://docs.jax.dev/en/latest/debugging/flags.html"
_TUNING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide"


class AnomalyDetection(SwitchOn):
    """PyTorch checks every gradient for NaN, and keeps where each operator was called."""

    name = "anomaly-detection"
    switch = "anomaly"
    seen = "Anomaly detection is on"
    cure = "Turn it off: it is meant for debugging"
    source = "https://github.com/yenchenlin/nerf-pytorch/issues/42"
    changes = ("no-anomaly",)


class DeterministicAlgorithms(SwitchOn):
    """PyTorch avoids the faster algorithms whose results differ from run to run."""

    name = "deterministic-algorithms"
    switch = "deterministic"
    seen = "Deterministic algorithms are on"
    cure = "Turn them off where runs need not repeat each other bit by bit"
    source = (
        "https://github.com/pytorch/pytorch/blob/2046ae1a87ced8d127c34e2b1558216bbfb90fa5/"
        "docs/source/notes/randomness.md"
    )
    changes = ("no-deterministic",)


class TorchProfiler(SwitchOn):
    """PyTorch's profiler records every step."""

    name = "torch-profiler"
    switch = "profiler"
    seen = "PyTorch's profiler records every step"
    cure = "Remove it, or give it a schedule of a few steps"
    source = _TUNING
    changes = ("no-torch-profiler",)


class PythonProfiler(SwitchOn):
    """A profiler is called for every Python function."""

    name = "python-profiler"
    switch = "Python profiler"
    seen = "A Python profiler is called for every function"
    cure = "Train without it"
    source = "https://docs.python.org/3.1/library/profile.html"
    changes = ("no-python-profiler",)


class LaunchBlocking(SwitchOn):
    """The host waits for every kernel."""

    name = "launch-blocking"
    switch = "blocking"
    seen = "CUDA_LAUNCH_BLOCKING=1 lets the host wait for every kernel"
    cure = "Unset it: it is meant for debugging"
    source = "https://github.com/jishengpeng/WavTokenizer/issues/17"

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if there are kernels to wait for."""
        return super().find(evidence) if evidence.observed.on_gpu else None


class RunEagerly(SwitchOn):
    """Keras runs the layers of each step one by one, as Python code."""

    name = "run-eagerly"
    switch = "run_eagerly"
    seen = "Keras runs each step without compiling it"
    cure = "Remove run_eagerly=True: it is meant for debugging"
    source = "https://keras.io/api/models/model_training_apis"
    changes = ("no-eager",)


class DisabledJit(SwitchOn):
    """JAX compiles nothing."""

    name = "disabled-jit"
    switch = "disable_jit"
    seen = "jax_disable_jit is on, so JAX compiles nothing"
    cure = "Turn it off: it is meant for debugging"
    source = _JAX_FLAGS
    changes = ("no-disable-jit",)


class DebugNans(SwitchOn):
    """JAX checks every result for NaN."""

    name = "debug-nans"
    switch = "debug_nans"
    seen = "jax_debug_nans is on, so JAX checks every result for NaN"
    cure = "Turn it off: it is meant for debugging"
    source = _JAX_FLAGS
    changes = ("no-debug-nans",)


class DoublePrecision(Cause):
    """The weights have 64 bits."""

    name = "double-precision"
    cure = "Train in single precision"
    source = "https://github.com/pytorch/pytorch/issues/4588"
    changes = ("fp32",)

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if the network computes with 64 bits."""
        if evidence.observed.precision != "float64":
            return None
        changes = () if evidence.observed.framework == "jax" else self.changes
        place = evidence.observed.places.get("model")
        return self.found("The network computes in double precision", place, changes=changes)


class DenormalNumbers(Cause):
    """Denormal numbers, which are very close to zero, slow the CPU down."""

    name = "denormal-numbers"
    cure = "Let the CPU treat them as zero, with torch.set_flush_denormal(True)"
    source = "https://github.com/pytorch/pytorch/issues/23862"
    changes = ("flush-denormal",)

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if there are many on the CPU."""
        share = evidence.facts.get("denormal", 0.0)
        if evidence.observed.on_gpu or share < _MANY_DENORMAL:
            return None
        return self.found(
            f"{percent(share, 0)} of the weights, gradients and optimiser state are denormal "
            "numbers, which CPUs process slowly"
        )


class FewThreads(Cause):
    """PyTorch uses fewer threads than there are cores."""

    name = "few-threads"
    cure = "Use all cores"
    source = _TUNING

    def find(self, evidence: Evidence) -> Found | None:
        """Return the cause if a training on the CPU leaves cores unused."""
        seen = evidence.observed
        cores = evidence.physical_cores
        if seen.on_gpu or not seen.threads or seen.threads >= cores:
            return None
        used = "one CPU thread" if seen.threads == 1 else f"{seen.threads} CPU threads"
        return self.found(f"The script uses {used} of {cores}", changes=(f"threads={cores}",))


CAUSES = (
    AnomalyDetection,
    DeterministicAlgorithms,
    TorchProfiler,
    PythonProfiler,
    LaunchBlocking,
    RunEagerly,
    DisabledJit,
    DebugNans,
    DoublePrecision,
    DenormalNumbers,
    FewThreads,
)
