"""The record of one run, as frozen data.

A change that old readers would misread raises ``SCHEMA_VERSION``; a new key that may be absent does
not. An unknown value is ``null``, never 0. A number that is not finite is the string ``nan``,
``inf`` or ``-inf``, since JSON has none. All durations are in seconds, all sizes in bytes;
accuracies are fractions from 0 to 1. *The epochs' clock* counts seconds from the start of the
measured process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct, field

from trainmark.record.caveats import EXTERNAL_SHARE, Caveat
from trainmark.record.named_metric import NamedMetric
from trainmark.record.observed import Observed
from trainmark.record.specification import Specification, view_of
from trainmark.workload.spec import Workload

SCHEMA_VERSION = 2
"""Version of the format that is written, and the only one that is read. Version 1 was never
released."""

Status = Literal["ok", "failed", "timeout", "interrupted", "diverged"]
Protocol = Literal["fresh", "continued"]


class Outcome(Struct, frozen=True):
    """How the run ended.

    Args:
        status: ``diverged`` if a loss was not finite.
        reason: why it ended so; null if there is nothing to say.
        step: of a divergence, the first step whose loss is not finite, from 0.
        loss_before: of a divergence, the last finite loss.
        stderr_tail: end of what the measured process printed, stdout included; null if there is
            none or the run is ok.
    """

    status: Status
    reason: str | None = None
    step: int | None = None
    loss_before: float | None = None
    stderr_tail: str | None = None


class WorkloadRef(Struct, frozen=True, dict=True):
    """What was trained. Runs are grouped by its two fingerprints.

    The specification is decoded once; no other code reads its nested tables.

    Args:
        name: name of the workload, or of a measured command.
        step_fingerprint: equal for workloads with the same arithmetic per step.
        schedule_fingerprint: equal for workloads with the same number and order of steps, evaluated
            at the same times.
        spec: the whole specification; of a command, its words with their placeholders.
    """

    name: str
    step_fingerprint: str
    schedule_fingerprint: str
    spec: dict[str, Any]

    def __post_init__(self) -> None:
        """Decode the specification.

        Raises:
            ValueError: it does not have the types that readers rely on.
        """
        _ = self.view

    @cached_property
    def view(self) -> Specification:
        """What readers need of the specification.

        Returns:
            A typed view.
        """
        return view_of(self.spec)

    @cached_property
    def workload(self) -> Workload:
        """The workload itself.

        Returns:
            The decoded specification.

        Raises:
            Misfit: the specification is that of a command, or of another version of trainmark.
        """
        return Workload.from_data(self.spec)


class DatasetRef(Struct, frozen=True):
    """The dataset that was used.

    Args:
        name: name of the dataset.
        sha256: checksum of the uncompressed files.
        train_examples: number of training examples.
        test_examples: number of test examples.
    """

    name: str
    sha256: str
    train_examples: int
    test_examples: int


class BackendRef(Struct, frozen=True):
    """The framework that trained.

    Args:
        name: name of the backend; of a command, its program.
        version: version of the framework; of a command, the frameworks that it reports, with their
            versions.
        style: style of the backend; of a command, the varied values, such as ``workers=4``, or null
            if none are.
        precision: precision of the arithmetic; null for a command.
        compile_cache: ``none`` if nothing was compiled, else the state of the framework's cache;
            null for a command.
        settings: the framework's own settings that decide speed or arithmetic, as it reported them.
    """

    name: str
    version: str | None
    style: str | None
    precision: str | None
    compile_cache: Literal["cold", "warm", "none"] | None
    settings: dict[str, Any] = field(default_factory=dict)


class DeviceRef(Struct, frozen=True):
    """The device that was trained on, as the backend reports it.

    Args:
        id: such as ``cpu`` or ``cuda:0``; of a command, the device that it was given, or null if
            none was.
        name: name of the model.
        kind: the processor or an accelerator; null if unknown, as for a command that was given no
            device.
        memory_bytes: size of the device's memory, in bytes.
        gpu: its column in :class:`Samples`; null for a CPU or if unknown.
    """

    id: str | None
    name: str | None
    kind: Literal["cpu", "accelerator"] | None
    memory_bytes: int | None = None
    gpu: int | None = None

    def __post_init__(self) -> None:
        """Reject a column that can't exist.

        Raises:
            ValueError: the number of the GPU is negative.
        """
        if self.gpu is not None and self.gpu < 0:
            raise ValueError("the number of a GPU is negative")


class Machine(Struct, frozen=True):
    """The machine that a run was measured on.

    Args:
        name: its name in the network.
        os: operating system and version of its kernel.
        architecture: such as ``x86_64``.
        cpu: name of the CPU's model.
        physical_cores: number of physical cores.
        logical_cores: number of logical cores.
        usable_cores: number of logical cores that trainmark could use.
        memory_bytes: size of the main memory, in bytes.
        gpus: names of the GPUs' models, in the driver's order.
        gpu_driver: version of the GPUs' driver.
        load_before: share of the usable cores' time that other processes used just before the run,
            0 to 1.
        cpu_quota: cores that the control group may use at a time; null without a quota.
        cpu_governors: the CPU's frequency governors; empty if not visible, as in a virtual machine.
        cpu_turbo: whether cores may run above their base frequency.
        cuda: the newest CUDA version that the driver supports.
        identity: distinguishes machines of the same name without identifying them: a keyed hash of
            the system's machine id. Null if the system has none.
        labels: the user's labels of it (``--label KEY=VALUE``).
    """

    name: str
    os: str
    architecture: str
    cpu: str | None
    physical_cores: int | None
    logical_cores: int | None
    usable_cores: int | None
    memory_bytes: int | None
    gpus: list[str]
    gpu_driver: str | None
    load_before: float | None
    cpu_quota: float | None = None
    cpu_governors: list[str] = field(default_factory=list)
    cpu_turbo: bool | None = None
    cuda: str | None = None
    identity: str | None = None
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def labelled(self) -> str | None:
        """All labels as text; None without labels."""
        return ", ".join(f"{key}={value}" for key, value in self.labels.items()) or None


class Python(Struct, frozen=True):
    """The interpreter that trained.

    Args:
        label: its label (``--python LABEL=PATH``), or ``default``; null for a command.
        version: version of Python; null if unknown.
        executable: its path; of a command, its program.
        packages: versions of the packages that matter to the run, by name.
    """

    label: str | None
    version: str | None
    executable: str
    packages: dict[str, str] = field(default_factory=dict)


class ModelRef(Struct, frozen=True):
    """Size and cost of the network.

    Args:
        parameters: number of parameters.
        forward_flops_per_example: floating-point operations of a forward pass.
        training_flops_per_example: floating-point operations of a training step.
        initial_weights_sha256: checksum of the initial weights; equal if two runs started alike.
        unchanged_weights: names of the arrays that training left exactly as they were; null if the
            training was not completed.
    """

    parameters: int
    forward_flops_per_example: int
    training_flops_per_example: int
    initial_weights_sha256: str | None = None
    unchanged_weights: list[str] | None = None


class Window(Struct, frozen=True):
    """A period in which a training computed, between two pauses.

    Args:
        start_seconds: when it started, on the epochs' clock.
        seconds: its duration.
    """

    start_seconds: float
    seconds: float


class Epoch(Struct, frozen=True):
    """One epoch, timed between synchronised edges.

    The edges of a command's epoch are what it reports, so they are only as synchronised as its
    reports.

    Args:
        index: its number, from 0.
        start_seconds: when it started, in seconds since the measured process started.
        seconds: training time, without evaluation and pauses.
        steps: number of steps; null if a command does not report it.
        examples: number of training examples; null if a command does not report it.
        train_loss: training loss; :class:`MetricsRef` says how it was measured.
        train_accuracy: training accuracy, 0 to 1.
        test_loss: mean loss of the test examples; null without evaluation.
        test_accuracy: test accuracy, 0 to 1; null without evaluation.
        evaluation_seconds: duration of the evaluation after it; null without evaluation.
        tree_pss_bytes: memory of the measured process and all it started at the end of the epoch,
            in bytes, with each shared page divided among the processes that share it; null if
            unknown or too expensive to read.
        data_wait_seconds: how long a command waited for batches; null if it does not measure that.
        windows: when an interleaved run trained; empty if it never paused.
    """

    index: int
    start_seconds: float
    seconds: float
    steps: int | None
    examples: int | None
    train_loss: float | None = None
    train_accuracy: float | None = None
    test_loss: float | None = None
    test_accuracy: float | None = None
    evaluation_seconds: float | None = None
    tree_pss_bytes: int | None = None
    data_wait_seconds: float | None = None
    windows: list[Window] = field(default_factory=list)


class FirstEvaluation(Struct, frozen=True):
    """The evaluation of the initial weights; its fields are those of :class:`Epoch`.

    Args:
        seconds: its duration.
        test_loss: mean loss of the test examples.
        test_accuracy: test accuracy, 0 to 1.
        train_loss: exact training loss; null if the workload reports running metrics.
        train_accuracy: exact training accuracy, 0 to 1.
    """

    seconds: float
    test_loss: float | None
    test_accuracy: float | None
    train_loss: float | None = None
    train_accuracy: float | None = None


class Slice(Struct, frozen=True):
    """A part of a training between two synchronised edges, while the other sides of its round
    paused.

    Shares are fractions of the time of the usable cores, null if they can't be read.

    Args:
        block: number of its block in its round; a block is neighbouring slices of all sides in
            counterbalanced order.
        order: number of its turn in its round.
        start_seconds: when it started, on the epochs' clock.
        steps: number of steps; a step of a command is a batch or an epoch.
        timed_steps: number of steps that were timed: the last ones.
        seconds: duration of the timed steps.
        examples: number of examples of the timed steps; the number of epochs if a command does not
            report how many examples an epoch has.
        others_share: share that processes outside all sides took. It may be wrong by a few percent,
            even below 0, since the system counts in ticks.
        stolen_share: share that the host of this virtual machine gave to others.
        spare_share: share of the cores that no side uses, since all have fewer threads.
        idle_share: share that the paused sides took.
        queued: seconds per second that the threads of this side waited for a core, summed over
            threads.
        switches: how often per second these threads lost a core to another thread.
        pressure: share of the wall-clock time in which any thread of the machine waited for a core.
        passes: number of forward passes with gradients in the timed steps of an observed command;
            null if they were not seen.
    """

    block: int
    order: int
    start_seconds: float
    steps: int
    timed_steps: int
    seconds: float
    examples: int | float
    others_share: float | None = None
    stolen_share: float | None = None
    spare_share: float = 0.0
    idle_share: float | None = None
    queued: float | None = None
    switches: float | None = None
    pressure: float | None = None
    passes: int | None = None

    def __post_init__(self) -> None:
        """Reject what has no speed.

        Raises:
            ValueError: steps, seconds or examples are not positive and finite.
        """
        has_steps = 0 < self.timed_steps <= self.steps
        has_speed = 0 < self.seconds < math.inf and 0 < self.examples < math.inf
        if not (has_steps and has_speed):
            raise ValueError("a slice needs timed steps, seconds and examples above 0")

    @property
    def external_share(self) -> float | None:
        """Share of the cores' time that others took from the side, or the host stole, if known."""
        if self.others_share is None:
            return self.stolen_share
        in_spare_cores = min(self.spare_share, max(self.others_share, 0.0))
        return self.others_share - in_spare_cores + (self.stolen_share or 0.0)


def are_disturbed(block: Iterable[Slice]) -> bool:
    """Check whether other processes took too much during a block for it to count.

    The slices are judged together, since the system counts in ticks of 10 ms, which is too coarse
    for one.

    Args:
        block: the slices of one block.

    Returns:
        Whether the block is disturbed; False if nothing is known.
    """
    others = 0.0
    whole = 0.0
    for each in block:
        share = each.external_share
        if share is not None:
            others += share * each.seconds
            whole += each.seconds
    return others > EXTERNAL_SHARE * whole


class LogLine(Struct, frozen=True):
    """One line of ``--log-every``.

    Args:
        step: number of the step, from 0.
        loss: loss of this step.
        samples_per_second: throughput of the steps since the previous line.
        seconds_per_step: mean duration of these steps.
    """

    step: int
    loss: float
    samples_per_second: float
    seconds_per_step: float


class MetricsRef(Struct, frozen=True):
    """How the training metrics were measured.

    Args:
        train: ``running`` averages the batches of an epoch, each before its update and with
            dropout; ``exact`` evaluates the whole training set after the epoch.
        loss_includes_l2: whether the training loss includes the layers' L2 terms.
    """

    train: Literal["running", "exact"]
    loss_includes_l2: bool


class Final(Struct, frozen=True):
    """Result of the run: the metrics of its last epoch, and its training time.

    Args:
        train_loss: training loss.
        train_accuracy: training accuracy, 0 to 1.
        test_loss: mean loss of the test examples.
        test_accuracy: test accuracy, 0 to 1.
        training_seconds: sum of the epochs, without evaluation.
        time_to_target_seconds: training time up to the end of the epoch that reached the target of
            ``--until``, without compilation and evaluation; null if there is no target or it was
            missed.
    """

    train_loss: float | None = None
    train_accuracy: float | None = None
    test_loss: float | None = None
    test_accuracy: float | None = None
    training_seconds: float | None = None
    time_to_target_seconds: float | None = None


class Samples(Struct, frozen=True):
    """Measurements of the run from outside, taken a few times a second; at most 1,000 rows.

    Columns are ``[time]``, and those of GPUs ``[time][gpu]``. A value that could not be read is
    null, and so is a column without any. CPU percentages are of the time since the previous row.

    Args:
        interval_seconds: time between two rows.
        t: when each row was measured, on the epochs' clock.
        cpu_percent: utilisation of every core, ``[time][core]``; an empty row if the cores are not
            those of the previous row.
        stolen_percent: share of all cores' time that the host of a virtual machine gave to others.
        tree_cpu_percent: CPU time of the measured process and all it started; 100 is one core.
        tree_resident_bytes: resident memory of the same; a page that two processes share counts
            twice.
        cpu_hertz: mean frequency of some cores.
        cpu_joules: energy of the CPU packages, a counter with an arbitrary start.
        gpu_percent: share of the time in which any kernel ran, as the driver reports it.
        gpu_memory_bytes: memory in use.
        gpu_watts: power.
        gpu_joules: energy, a counter since the driver was loaded.
        gpu_sm_hertz: clock of the multiprocessors.
        gpu_memory_hertz: clock of the memory.
        gpu_celsius: temperature.
        gpu_fan_percent: speed of the fan.
        gpu_throttle_bits: why the clocks were reduced; bits are as in the vendor's driver.
    """

    interval_seconds: float
    t: list[float]
    cpu_percent: list[list[float | None]] | None = None
    stolen_percent: list[float | None] | None = None
    tree_cpu_percent: list[float | None] | None = None
    tree_resident_bytes: list[int | None] | None = None
    cpu_hertz: list[float | None] | None = None
    cpu_joules: list[float | None] | None = None
    gpu_percent: list[list[float | None]] | None = None
    gpu_memory_bytes: list[list[int | None]] | None = None
    gpu_watts: list[list[float | None]] | None = None
    gpu_joules: list[list[float | None]] | None = None
    gpu_sm_hertz: list[list[float | None]] | None = None
    gpu_memory_hertz: list[list[float | None]] | None = None
    gpu_celsius: list[list[float | None]] | None = None
    gpu_fan_percent: list[list[float | None]] | None = None
    gpu_throttle_bits: list[list[int | None]] | None = None


class Peaks(Struct, frozen=True):
    """Measured peak speed of the device.

    Args:
        matmul_flops_per_second: floating-point operations per second of large matrix products.
        copy_bytes_per_second: bytes per second of copies in the device's memory; bytes read and
            written both count.
        conditions: everything that they depend on, and when they were measured.
    """

    matmul_flops_per_second: float | None
    copy_bytes_per_second: float | None
    conditions: dict[str, Any] = field(default_factory=dict)

    @property
    def created(self) -> str | None:
        """When they were measured, in ISO 8601; None if the record does not say."""
        created = self.conditions.get("created")
        return created if isinstance(created, str) else None

    @property
    def disturbed(self) -> bool:
        """Whether others used the machine or the device at the time, so the true peak is higher."""
        return self.conditions.get("disturbed") is True

    @property
    def others_share(self) -> float | None:
        """Share of the usable cores' time that others used just before, 0 to 1; None if unknown."""
        share = self.conditions.get("load_before")
        return float(share) if isinstance(share, (int, float)) else None


class ThreadsSearch(Struct, frozen=True):
    """How the number of CPU threads was chosen, next to an accelerator.

    Args:
        chosen: number of threads with which a step was fastest; the run was measured with it.
        default: number of threads that the framework would have used.
        step_seconds: time of a step by number of threads, in seconds, from a few steps each.
    """

    chosen: int
    default: int
    step_seconds: dict[str, float]

    def __post_init__(self) -> None:
        """Reject a search without the times that it was decided by.

        Raises:
            ValueError: a time is missing, or is not positive and finite.
        """
        for threads in (self.chosen, self.default):
            if not 0 < self.step_seconds.get(str(threads), 0.0) < math.inf:
                raise ValueError(f"a search needs the time of a step with {threads} threads")

    @property
    def slowdown(self) -> float:
        """Time of a step with the default number of threads / with the chosen one."""
        return self.step_seconds[str(self.default)] / self.step_seconds[str(self.chosen)]


class Memory(Struct, frozen=True):
    """Peak memory.

    Args:
        host_peak_bytes: resident memory of the measured process, in bytes.
        device_peak_bytes: memory that the framework used on the device, in bytes; null if it does
            not report it.
    """

    host_peak_bytes: int | None = None
    device_peak_bytes: int | None = None


class Energy(Struct, frozen=True):
    """Energy of the training epochs.

    Args:
        joules: energy of the device; null if the training was too short for its counter, or a
            reading is missing.
        source: the counter.
    """

    joules: float | None
    source: str | None


class Process(Struct, frozen=True):
    """A measured command, from its start to its end.

    Args:
        argv: its words as they were started.
        directory: its working folder.
        start_seconds: when it started, on the epochs' clock.
        seconds: its duration; null if its end was not observed.
        exit_code: its exit code; if negative, the signal that killed it.
        user_seconds: CPU time in user mode, of it and of the children that it waited for.
        system_seconds: likewise, CPU time in the kernel.
        language: the programming language that it says it reports from.
        program_sha256: checksum of the script among its words, else of the program if that is a
            path, else null.
        odd: descriptions of the first few reports that were not understood.
        left_out: number of reports that were not understood; null if unknown.
        attached: whether the observer was started in a Python process; null if it was turned off.
        environment: the environment variables that ``--vary-env`` set.
    """

    argv: list[str]
    directory: str
    start_seconds: float | None = None
    seconds: float | None = None
    exit_code: int | None = None
    user_seconds: float | None = None
    system_seconds: float | None = None
    language: str | None = None
    program_sha256: str | None = None
    odd: list[str] = field(default_factory=list)
    left_out: int | None = None
    attached: bool | None = None
    environment: dict[str, str] = field(default_factory=dict)


class Spread(Struct, frozen=True):
    """How one training was spread over devices.

    Args:
        data: number of copies of the network, each of which takes its share of every batch.
        pipeline: number of stages that each copy is cut into.
        microbatches: number of pieces in which a copy's share of a batch goes through the stages.
        all_reduce: whether the copies averaged their gradients; without it, the run shows what the
            all-reduce costs and is not a valid training.
        weak: whether the batch grew with the number of copies.
        nodes: number of machines.
        restarts: how often all ranks were restarted.
        host: name of the machine of this rank; null in the record of the whole training.
    """

    data: int
    pipeline: int
    microbatches: int = 1
    all_reduce: bool = True
    weak: bool = False
    nodes: int = 1
    restarts: int = 0
    host: str | None = None


class Group(Struct, frozen=True):
    """The group of runs that this one was planned with.

    Runs with the same ``id``, ``session`` and ``Record.round`` were measured together.

    A training on several processes has one record of the whole and one of each rank.

    Args:
        id: equal for all runs of the plan.
        session: equal for all runs of one command; a later command that completes the plan is
            another session.
        kind: kind of study; in a ``parity`` and a ``scale``, all sides get the batches in the same
            order.
        rank: number of the process, from 0; null in the record of the whole training.
        world: number of processes; null for a training that is not spread.
        trial: in a ``sweep``, the number of the trial, from 1.
        spread: how the training was spread over devices; null for an ordinary training on one.
        values: in a ``sweep``, the values of the varied hyper-parameters.
    """

    id: str
    session: str | None = None
    kind: Literal["rounds", "parity", "scale", "sweep"] = "rounds"
    rank: int | None = None
    world: int | None = None
    trial: int | None = None
    spread: Spread | None = None
    values: dict[str, str | int | float | bool] | None = None


class Record(Struct, frozen=True, kw_only=True):
    """The record of one run.

    For a measured command (``process`` is not null), only what is observed from outside and what it
    reports is known:
    ``dataset``, ``model``, ``metrics`` and the interpreter's label are null, and so is ``seed`` if
    the command has no ``{seed}``.

    Args:
        schema_version: version of the format.
        id: name of the record's file, without its ending.
        created: when the run started, in ISO 8601.
        command: the command line, or the call in Python.
        trainmark: version that measured; in a clone it includes the commit and whether files were
            changed.
        outcome: how the run ended.
        workload: what was trained.
        dataset: the dataset that was used.
        backend: the framework that trained.
        device: the device that was trained on.
        machine: the machine.
        python: the interpreter.
        seed: seed of the initial weights, the order of the examples and the framework's random
            numbers.
        repeat: number of the repeat of its side, from 0.
        round: number of the round in which it was measured, from 0.
        protocol: whether repeats start from new weights or from the previous repeat's.
        threads: CPU threads; null if the user did not fix them.
        threads_search: how the best number of threads was found; null if no search had a result.
        memory_fraction: largest fraction of the device's memory to use, 0 to 1; null if not
            limited.
        price_per_hour: price of the device per hour, in any currency.
        weights_from: id of the record whose weights it started from.
        published_run: name of the published run that it repeats.
        model: size and cost of the network.
        setup_seconds: time from the start of the process until the training was ready to begin.
        compile_seconds: time to compile; null if nothing was compiled.
        before: the evaluation before the first step; null if the workload has none.
        epochs: the epochs.
        slices: the slices of an interleaved run.
        slices_in: id of the record with its slices, if the run failed or was interrupted after
            them.
        step_losses: loss of each step, ``[steps]``, L2 terms included.
        step_l2_losses: the L2 part of it, ``[steps]``; null if no layer has one.
        log: lines of ``--log-every``.
        metrics: how the training metrics were measured.
        final: result of the run.
        samples: measurements from outside.
        peaks: measured peak speed of the device.
        memory: peak memory.
        energy: energy of the training epochs; null if the device has no counter that can be read.
        process: the measured command; null for a workload.
        observed: the observed steps; null if there are none.
        named_metric: the figure that ``measure --metric`` names; null without the option.
        group: the group of runs that it was planned with.
        caveats: what qualifies its numbers.
    """

    schema_version: int = SCHEMA_VERSION
    id: str
    created: str
    command: str
    trainmark: str | None = None
    outcome: Outcome
    workload: WorkloadRef
    dataset: DatasetRef | None
    backend: BackendRef
    device: DeviceRef
    machine: Machine
    python: Python
    seed: int | None
    repeat: int
    round: int
    protocol: Protocol
    threads: int | None
    threads_search: ThreadsSearch | None = None
    memory_fraction: float | None = None
    price_per_hour: float | None = None
    weights_from: str | None = None
    published_run: str | None = None
    model: ModelRef | None
    setup_seconds: float | None = None
    compile_seconds: float | None = None
    before: FirstEvaluation | None = None
    epochs: list[Epoch] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    slices_in: str | None = None
    step_losses: list[float] = field(default_factory=list)
    step_l2_losses: list[float] | None = None
    log: list[LogLine] = field(default_factory=list)
    metrics: MetricsRef | None
    final: Final = field(default_factory=Final)
    samples: Samples | None = None
    peaks: Peaks | None = None
    memory: Memory = field(default_factory=Memory)
    energy: Energy | None = None
    process: Process | None = None
    observed: Observed | None = None
    named_metric: NamedMetric | None = None
    group: Group
    caveats: list[Caveat] = field(default_factory=list)

    @property
    def epoch_count(self) -> int | None:
        """Number of epochs; of an observed command, of those whose end was seen, if known."""
        return len(self.epochs) if self.observed is None else self.observed.epochs
