"""The closed list of caveats that qualify a number."""

from __future__ import annotations

from enum import Enum

BUSY_SHARE = 0.2
"""Share of all cores' time used by other processes above which a machine counts as busy."""
EXTERNAL_SHARE = 0.05
"""Share used by others or stolen during a slice above which its block does not count."""


class Caveat(str, Enum):
    """One caveat: its id and its meaning."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Caveat:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    # These are about one run.
    SUBSTITUTED_DATASET = (
        "substituted-dataset",
        "synthetic digits replaced the workload's own dataset",
    )
    PARTIAL_DATASET = "partial-dataset", "only part of the dataset was available"
    BUSY_MACHINE = (
        "busy-machine",
        "other processes were using the CPU when the run started or while it trained",
    )
    STOLEN_TIME = (
        "stolen-time",
        "the host of this virtual machine gave more than 2 % of the cores' time to others",
    )
    SHARED_DEVICE = "shared-device", "another process was using the device when the run started"
    THROTTLED = (
        "throttled",
        "the device lowered its clocks while it trained, because of heat or a power limit",
    )
    CLOCK_DRIFT = "clock-drift", "the device's clock fell by more than 5 % while it trained"
    SHORT_ENERGY_WINDOW = "short-energy-window", "the training was too short for the energy counter"
    UNKNOWN_PEAK = "unknown-peak", "the peak of the device could not be measured"
    ONE_EPOCH = (
        "one-epoch",
        "a single epoch, or none was recognised, so its time is that of the whole training, with "
        "the warm-up",
    )
    SIDE_BY_SIDE = (
        "side-by-side",
        "other trials of a sweep trained at the same time; don't compare its timings",
    )
    STOPPED_EARLY = (
        "stopped-early",
        "the sweep's scheduler stopped the trial before its last epoch; sweep without --asha to "
        "train it to the end",
    )
    SHORTENED = (
        "shortened",
        "the time limit ended the training before its last step, so learning is not judged; "
        "--budget 0 trains to the end",
    )
    LOGGED_STEPS = "logged-steps", "--log-every synchronised the device in the middle of epochs"
    CONTINUED = (
        "continued",
        "repeats continue each other in one process, so they are neither fresh nor interleaved",
    )
    STARTED_FROM_RECORD = "started-from-record", "the weights came from another record"
    REPLAYED = (
        "replayed",
        "earlier repeats were trained again, without records, to resume a continued run",
    )
    UNTESTED_VERSION = (
        "untested-version",
        "the framework is newer than the versions that trainmark was tested with",
    )
    TARGET_MISSED = "target-missed", "the run ended before it reached the --until target"
    NOT_LEARNING = (
        "not-learning",
        "the training loss did not fall or is not finite, the accuracy is at chance level, or no "
        "weight changed",
    )
    LEARNING_UNSEEN = (
        "learning-unseen",
        "the loss does not show whether it learns, so learning is not judged; measure's --metric "
        "NAME names a figure that does",
    )
    RANDOM_DATA = "random-data", "the data are random, so learning is not judged"
    NO_EPOCHS = (
        "no-epochs",
        "neither steps nor epochs were seen, so whole processes are compared, including start-up",
    )
    ODD_REPORTS = "odd-reports", "some reports of the command were not understood and are left out"
    GROWING = (
        "growing",
        "the steps take longer and longer, so a mean over them says little; "
        "trainmark show says by how much",
    )
    LEFT_PROCESSES = "left-processes", "the command left processes behind, which were stopped"
    UNMOVED_WEIGHTS = "unmoved-weights", "the weights of a whole layer did not change"
    DEFAULT_THREADS = (
        "default-threads",
        "next to an accelerator, the CPU's best number of threads was not determined, so another "
        "may be faster; --threads N sets one for a workload, --vary-env OMP_NUM_THREADS=1,2,4 "
        "compares several for a script",
    )
    OVERSUBSCRIBED = (
        "oversubscribed",
        "more threads than cores, so the timings don't show the effect of more hardware",
    )
    NOTHING_AVERAGED = (
        "nothing-averaged",
        "the copies did not average their gradients, so this is not a valid training",
    )
    RESTARTED = "restarted", "a rank failed, and all ranks were restarted from the beginning"
    STEP_NOT_COMPILED = (
        "step-not-compiled",
        "the step could not be compiled, so it ran eager; `trainmark show` of its record has the "
        "reason; PyTorch needs the package triton and a C compiler on a GPU, a C++ compiler on a "
        "CPU",
    )
    STEP_NOT_CAPTURED = (
        "step-not-captured",
        "the step could not be captured in a CUDA graph, so Python launched each kernel; "
        "`trainmark show` of its record has the reason; TRAINMARK_CUDA_GRAPHS=0 trains without "
        "graphs from the start",
    )
    SHORT_FOR_COMPILING = (
        "short-for-compiling",
        "compiling probably took longer than the compiled steps saved in such a short training; "
        "TRAINMARK_TORCH_FAST=eager would probably finish sooner",
    )
    ONE_AFTER_THE_OTHER = (
        "one-after-the-other",
        "the sides did not fit into memory or onto the device together, so they did not alternate",
    )
    SHARED_PROCESS = (
        "shared-process",
        "other configurations may have trained earlier in the same process and slowed this one "
        "down; for a verdict, compare configurations with `trainmark run`",
    )
    # These are about a comparison.
    FEW_ROUNDS = "few-rounds", "fewer than 3 rounds, so there is no interval"
    WIDE_SPREAD = "wide-spread", "the slowest round took over 20 % longer than the fastest"
    DISTURBED = (
        "disturbed",
        "other processes took more than 5 % of the CPU in some blocks, which are left out",
    )
    TOO_DISTURBED = (
        "too-disturbed",
        "other processes disturbed so many blocks, or changed the result so much, that there is "
        "no verdict; fewer --threads, or another time, would help",
    )
    PACE_CHANGED = (
        "pace-changed",
        "one side got faster or slower within its runs, compared to the other, so the speed-up "
        "depends on their length",
    )
    CONVERGES_FASTER = (
        "converges-faster",
        "reached the --until target in fewer epochs than the reference, so the two don't train "
        "alike",
    )
    UNPAIRED = (
        "unpaired",
        "not measured in the same rounds, so slow drifts of the machine do not cancel",
    )
    FAILED_RUNS = "failed-runs", "some runs failed or were interrupted, and are left out"
    PER_PASS = (
        "per-pass",
        "steps have different numbers of forward passes, so the time of a pass is compared",
    )
    UNEQUAL_WORK = (
        "unequal-work",
        "a step does more on one side than on the other, and its examples are unknown, so speeds "
        "are not compared",
    )
    DIFFERENT_DATA = "different-data", "not the same dataset bytes"
    DIFFERENT_MACHINES = "different-machines", "not the same machine"
    DIFFERENT_VERSIONS = "different-versions", "not the same version of the framework"
    DIFFERENT_TRAINMARKS = (
        "different-trainmarks",
        "not the same version of trainmark, which may measure differently",
    )
    DIFFERENT_WEIGHTS = "different-weights", "not the same initial weights"
