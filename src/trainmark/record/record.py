"""The record of one run, as frozen data.

History of the format
    1   2026-11: the first. Later, without a new number: ``machine.identity``, ``machine.labels``, ``trainmark``.
    2   2026-11: fingerprints leave out fields at their default; what a command does not tell of itself is null.

:mod:`trainmark.record.migrations` reads the older ones.

A change that old readers would misread raises ``SCHEMA_VERSION``; a new key that may be absent does not. Unknown is
``null``, never 0. A number that is not finite is the string ``nan``, ``inf`` or ``-inf``, since JSON has none. All
durations are seconds, all sizes bytes; accuracies are fractions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct, field

from trainmark.record.caveats import EXTERNAL_SHARE, Caveat

SCHEMA_VERSION = 2

Status = Literal["ok", "failed", "timeout", "interrupted", "diverged"]
Protocol = Literal["fresh", "continued"]


class Outcome(Struct, frozen=True):
    """How the run ended; ``step`` and ``loss_before`` belong to a divergence."""

    status: Status
    reason: str | None = None
    step: int | None = None
    loss_before: float | None = None
    stderr_tail: str | None = None


class WorkloadRef(Struct, frozen=True):
    """What was trained: the whole specification, and two fingerprints to group by."""

    name: str
    step_fingerprint: str
    schedule_fingerprint: str
    spec: dict[str, Any]


class DatasetRef(Struct, frozen=True):
    """With what: ``sha256`` is over the uncompressed files."""

    name: str
    sha256: str
    train_examples: int
    test_examples: int


class BackendRef(Struct, frozen=True):
    """By whom; ``settings`` are the framework's own switches that decide speed or arithmetic, as it reported them.

    Of a script, the program is the name, and what was varied the style, null where nothing was.
    """

    name: str
    version: str | None
    style: str | None
    precision: str | None
    compile_cache: Literal["cold", "warm", "none"] | None
    settings: dict[str, Any] = field(default_factory=dict)


class DeviceRef(Struct, frozen=True):
    """On what, as the backend reports it; ``gpu`` is its column in the samples, null for a CPU or where unknown.

    Of a script, ``id`` is the device that it was given; ``kind`` is null where that says nothing.
    """

    id: str | None
    name: str | None
    kind: Literal["cpu", "accelerator"] | None
    memory_bytes: int | None = None
    gpu: int | None = None


class Cloud(Struct, frozen=True):
    """What a rented machine is, as records of version 0.1 had it from the provider; today's have labels.

    Args:
        provider: ``aws``, ``azure``, ``google``, ``oracle`` or ``alibaba``.
        instance_type: in the provider's words, such as ``g4dn.xlarge``.
        region: null if the cloud did not report it in time.
    """

    provider: str
    instance_type: str
    region: str | None = None

    @property
    def title(self) -> str:
        """``aws g4dn.xlarge, eu-west-1``."""
        return f"{self.provider} {self.instance_type}" + (f", {self.region}" if self.region else "")


class Machine(Struct, frozen=True):
    """The machine that a run was measured on.

    Args:
        gpus: names, in the driver's order.
        load_before: share of all cores that other processes used just before the run, 0 to 1.
        cpu_quota: cores that the control group may use at a time; null without a quota.
        cpu_governors: the CPU's frequency governors; empty if not visible, as in a virtual machine.
        cpu_turbo: whether cores may run above their base frequency.
        cuda: the newest version that the driver supports.
        cloud: only in records of version 0.1.
        identity: distinguishes machines of the same name without identifying them: a keyed hash of the system's
            machine id. Null if the system has none.
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
    cloud: Cloud | None = None
    identity: str | None = None
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def tags(self) -> dict[str, str]:
        """The labels; of a record of version 0.1, what it knew of the cloud."""
        if self.cloud is None:
            return self.labels
        known = {name: getattr(self.cloud, name) for name in ("provider", "instance_type", "region")}
        return {name: value for name, value in known.items() if value} | self.labels

    @property
    def labelled(self) -> str | None:
        """All labels as text; None without labels."""
        written = [self.cloud.title] if self.cloud else []
        return ", ".join([*written, *(f"{key}={value}" for key, value in self.labels.items())]) or None


class Python(Struct, frozen=True):
    """The interpreter that trained; ``packages`` are the versions that matter to the run."""

    label: str | None
    version: str | None
    executable: str
    packages: dict[str, str] = field(default_factory=dict)


class ModelRef(Struct, frozen=True):
    """Size and cost of the network.

    ``initial_weights_sha256`` proves two runs started alike; ``unchanged_weights`` are the names of those that training
    left exactly as they were, null where nothing was trained to its end.
    """

    parameters: int
    forward_flops_per_example: int
    training_flops_per_example: int
    initial_weights_sha256: str | None = None
    unchanged_weights: list[str] | None = None


class Window(Struct, frozen=True):
    """When a training computed between two pauses."""

    start_seconds: float
    seconds: float


class Epoch(Struct, frozen=True):
    """One epoch, timed between synchronised edges. ``start_seconds`` counts from the child's start.

    ``tree_pss_bytes`` is the memory of the process and all it started at the end of the epoch, shared pages divided
    among those who share them; null where the system does not tell, or reading it would have cost too much.

    A run that took turns trained in ``windows``; empty where it never paused.

    Of a script the edges are what it reports, so only as synchronised as it is; ``steps`` and ``examples`` are null
    where it does not tell. ``data_wait_seconds`` is how long it waited for batches, where it measures that.
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


class Slice(Struct, frozen=True):
    """A stretch of training between two synchronised edges, while the other sides of its round paused.

    Args:
        block: neighbouring slices of all sides in counterbalanced order, numbered in their round.
        order: of its turn in its round.
        start_seconds: on the epochs' clock; ``steps`` were trained from there on.
        timed_steps: the last ones of them, which took ``seconds`` for ``examples``. Of a command they are batches or
            epochs, and the examples are epochs where it does not tell how many an epoch has.
        others_share: of the time of the usable cores, what processes outside all sides took; null where it can't be
            read, and up to some percent wrong, even below 0, since the system counts in ticks.
        stolen_share: likewise, what the host of this virtual machine gave to others.
        spare_share: of these cores, those that no side uses, since all have fewer threads.
        idle_share: of the cores' time, what the paused sides took.
        queued: seconds that its threads waited for a core, in a second; several at once add up.
        switches: how often they lost one to another thread, in a second.
        pressure: share of the time in which anything on the machine had to wait for a core.
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

    @property
    def external_share(self) -> float | None:
        """Of the cores' time, what was stolen, or taken by others from cores that a side uses; None if unknown."""
        if self.others_share is None:
            return self.stolen_share
        in_spare_cores = min(self.spare_share, max(self.others_share, 0.0))
        return self.others_share - in_spare_cores + (self.stolen_share or 0.0)


def are_disturbed(block: Iterable[Slice]) -> bool:
    """Whether others took too much during these slices for their block to count.

    All slices are looked at together, since the system counts in ticks of 10 ms, which is too coarse for one.
    """
    known = [(share, each.seconds) for each in block if (share := each.external_share) is not None]
    return sum(share * seconds for share, seconds in known) > EXTERNAL_SHARE * sum(seconds for _, seconds in known)


class LogLine(Struct, frozen=True):
    """One line of ``--log-every``: the loss of ``step``, counted from 0, and the pace of the steps up to it."""

    step: int
    loss: float
    samples_per_second: float
    seconds_per_step: float


class MetricsRef(Struct, frozen=True):
    """How the training figures were taken."""

    train: Literal["running", "exact"]
    loss_includes_l2: bool


class Final(Struct, frozen=True):
    """Where the run arrived; ``training_seconds`` is the sum of the epochs, evaluation left out."""

    train_loss: float | None = None
    train_accuracy: float | None = None
    test_loss: float | None = None
    test_accuracy: float | None = None
    training_seconds: float | None = None
    time_to_target_seconds: float | None = None


class Samples(Struct, frozen=True):
    """What an observer outside the run saw, at most 1,000 rows; ``t`` shares the epochs' clock.

    ``[time]`` unless said: a column that nothing could be read of is null, and so is each value that was not read.
    Shares are of the time since the row before, 100 for one core or one GPU.

    Args:
        cpu_percent: of every core, ``[time][core]``; an empty line where the cores were not the same as before.
        stolen_percent: of all cores, time that the host of a virtual machine gave to others.
        tree_cpu_percent: of the measured process and all it started, 100 a core.
        tree_resident_bytes: of the same; a page that two share counts twice.
        cpu_hertz: mean frequency of some cores.
        cpu_joules: of the CPU's packages, a counter from some moment on.
        gpu_percent: ``[time][gpu]`` like all that follow; share in which any kernel ran, as the driver tells it.
        gpu_joules: a counter from the driver's start on.
        gpu_throttle_bits: why clocks were held back, as the vendor's driver numbers the reasons.
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
    """The measured limits of the device."""

    matmul_flops_per_second: float | None
    copy_bytes_per_second: float | None
    conditions: dict[str, Any] = field(default_factory=dict)

    @property
    def created(self) -> str | None:
        """When they were measured, in ISO 8601; None where the record does not tell."""
        created = self.conditions.get("created")
        return created if isinstance(created, str) else None

    @property
    def disturbed(self) -> bool:
        """Whether others used the machine or the device, so that it can do more."""
        return self.conditions.get("disturbed") is True

    @property
    def others_share(self) -> float | None:
        """Share of all cores' time that others used just before; None where that is not known."""
        share = self.conditions.get("load_before")
        return float(share) if isinstance(share, (int, float)) else None


class Memory(Struct, frozen=True):
    """Highest use: the child's resident memory, and what its framework held on the device."""

    host_peak_bytes: int | None = None
    device_peak_bytes: int | None = None


class Energy(Struct, frozen=True):
    """Energy of the training epochs and where the figure comes from."""

    joules: float | None
    source: str | None


class Process(Struct, frozen=True):
    """A measured command, from its start to its end.

    Args:
        argv: its words, as started.
        directory: its working folder.
        start_seconds: when it started, on the epochs' clock.
        seconds: its duration; null if its end was not observed.
        exit_code: its exit code; if negative, the signal that killed it.
        user_seconds: CPU time of it and of the children that it waited for; ``system_seconds`` likewise.
        language: the language that it says it reports from.
        program_sha256: checksum of the script among its words, else of the program if that is a path, else null.
        odd: descriptions of the first few reports that were not understood.
        left_out: number of reports that were not understood; null if unknown.
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


class Spread(Struct, frozen=True):
    """Over which devices one training was spread.

    Args:
        data: copies of the network, each with its share of every batch.
        pipeline: stages that a copy is cut into.
        microbatches: pieces that a share goes through the stages in.
        all_reduce: whether the copies averaged their gradients; where not, it tells what that costs, and is no
            training of the workload.
        weak: whether the batch grew with the copies.
        nodes: machines.
        restarts: how often all ranks were started again.
        host: name of the machine of this rank; null in the record of the whole.
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
    """The runs this one was planned with.

    Runs with the same ``id``, ``session`` and ``Record.round`` were measured together; a later command that completes
    the plan is another session. In a ``parity`` every side took the batches in the same order, and ``trial`` numbers
    the nudge of the initial weights, null where they were left as drawn; in a ``scale`` likewise. In a ``sweep`` it
    numbers the trials, from 1, and ``values`` are those of the hyper-parameters that are varied.

    A training on ``world`` processes has a record of the whole, whose ``rank`` is null, and one of each rank.
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

    For a measured command (``process`` is not null), only what is observed from outside and what it reports is known:
    ``dataset``, ``model``, ``metrics`` and the interpreter's label are null, and so is ``seed`` if the command has no
    ``{seed}``.

    ``trainmark`` is the version that measured; in a clone it includes the commit and whether files were changed.
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
    memory_fraction: float | None = None
    price_per_hour: float | None = None
    weights_from: str | None = None
    published_run: str | None = None
    model: ModelRef | None
    setup_seconds: float | None = None
    compile_seconds: float | None = None
    epochs: list[Epoch] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
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
    group: Group
    caveats: list[Caveat] = field(default_factory=list)
