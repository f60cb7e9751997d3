"""Turn options into tasks. All checks that can fail before a run are made here."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import get_args

from trainmark import regular
from trainmark.data.cache import cache_dir
from trainmark.data.fit import require_fit
from trainmark.data.locate import Located, locate
from trainmark.errors import DataUnavailable, UnknownName, UsageError
from trainmark.execute.parent import choose
from trainmark.execute.parent.bounds import MOST_ROUNDS, require_within
from trainmark.execute.parent.plan import Run, ScheduledWorkload, Settings, Side
from trainmark.execute.parent.probe import PROBE_TIMEOUT_SECONDS, Interpreter, Seen, probe
from trainmark.execute.parent.task import Task, in_rounds
from trainmark.execute.parent.time_limit import NO_LIMIT, TimeLimit
from trainmark.record import store, weights
from trainmark.workload import catalog
from trainmark.workload.model import lay_out
from trainmark.workload.precision import precision_named
from trainmark.workload.schedule import Protocol, Target
from trainmark.workload.size import Size
from trainmark.workload.spec import Workload

MAIN_WORKLOAD = "mnist-mlp512"
STAND_IN = "synthetic-digits"
DEFAULT_REPEATS = 3
"""Default number of rounds: the fewest that give a verdict."""
MOST_EPOCHS_UNTIL = 100
"""Default maximum number of epochs of a run with a target."""


class PreparationObserver:
    """Follows the preparation; override methods to show something."""

    def __call__(self, done: int, total: int | None, name: str) -> None:
        """``done`` of ``total`` bytes of a download have arrived."""

    def asking(self, backend: str) -> None:
        """The devices of a backend are being detected."""

    def measuring(self, what: str) -> None:
        """The peak speed of a device is being measured."""


@dataclass(frozen=True)
class RunRequest:
    """A request; the fields are the options of ``trainmark run``.

    Args:
        specification: a workload without a name here, such as a record's; replaces ``workloads``.
        cache: folder of trainmark's cache.
    """

    workloads: tuple[str, ...] = ()
    specification: Workload | None = None
    backends: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    interpreters: tuple[Interpreter, ...] = ()
    repeats: int | None = None
    epochs: int | None = None
    steps: int | None = None
    dataset: str | None = None
    dataset_repeats: int | None = None
    protocol: str | None = None
    published: bool = False
    until: Target | None = None
    precision: str = "fp32"
    size: Size | None = None
    weights_from: Path | None = None
    data_dir: Path | None = None
    environment: Path | None = None
    cache: Path = field(default_factory=cache_dir)
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        require_within("the number of repeats", self.repeats, 1, MOST_ROUNDS)


@dataclass(frozen=True)
class Selection:
    """Which sides can train which workloads.

    Args:
        able: the scheduled workloads, each with the sides that can train it.
        seen: what each backend supports.
        refused: a sentence for each requested combination that is not supported.
        weights_from: file of the initial weights, and the record it belongs to.
    """

    able: list[tuple[Workload, list[Side]]]
    seen: list[Seen]
    refused: list[str]
    weights_from: tuple[Path, str] | None

    @property
    def by_side(self) -> dict[tuple[str, str], Seen]:
        """What each backend supports, by (backend, interpreter label)."""
        return {(each.backend, each.interpreter.label): each for each in self.seen}

    def kind_of(self, side: Side) -> str:
        """Return the kind of its device: ``cpu`` or ``accelerator``."""
        device = self.by_side[side.backend, side.interpreter.label].device(side.device)
        return device.kind if device else "cpu"


@dataclass(frozen=True)
class Prepared:
    """What will be run.

    Args:
        seen: what each backend supports, by (backend, interpreter label).
        notices: sentences for the user about what is replaced or left out.
    """

    tasks: list[Task[Run]]
    seen: dict[tuple[str, str], Seen]
    notices: list[str]


def prepare(
    request: RunRequest,
    preparation: PreparationObserver | None = None,
    limit: TimeLimit = NO_LIMIT,
) -> Prepared:
    """Find workloads, data and devices, and lay out the rounds.

    Args:
        limit: when detecting devices has to end; downloads are not cut.

    Raises:
        UsageError, DataError: with what was expected, what was found, and what to do.
    """

    def probe_in_time(interpreter: Interpreter, backend: str) -> Seen:
        found = probe(interpreter, backend, limit.at_most(PROBE_TIMEOUT_SECONDS))
        if found.can is None and limit.is_reached:
            raise UsageError(
                f"{limit.name} was used up before {backend} had answered",
                fix="Use a larger --budget.",
            )
        return found

    selection = select(request, preparation, probe_in_time)
    _require_priced(request.settings.prices, selection)
    # The data comes last: it may have to be downloaded, and a typing error should be reported
    # before.
    located, notices = locate_all(
        request, [workload for workload, _ in selection.able], preparation
    )
    settings = dataclasses.replace(
        request.settings, weights_from=selection.weights_from, substituted=bool(notices)
    )
    scheduled_workloads: list[tuple[ScheduledWorkload, list[Side]]] = []
    for workload, able in selection.able:
        data = located[workload.dataset].windows(workload.input.length)
        scheduled_workloads += _courses(workload, data, able, selection, request)
        notices += _of_other_precisions(workload, request)
    notices += selection.refused
    return Prepared(in_rounds(scheduled_workloads, settings), selection.by_side, notices)


def select(
    request: RunRequest,
    preparation: PreparationObserver | None = None,
    ask: Callable[[Interpreter, str], Seen] = probe,
) -> Selection:
    """Find workloads, backends and devices: everything that does not need the data.

    Args:
        ask: probes a backend on the machine that will train.

    Raises:
        UsageError: with what was expected, what was found, and what to do.
    """
    _require_consistent(request)
    precision = precision_named(request.precision)
    named = [catalog.find(name) for name in request.workloads or (MAIN_WORKLOAD,)]
    workloads = [
        scheduled(each, request)
        for each in ([request.specification] if request.specification else named)
    ]
    chosen = choose.choose_backends(request.backends, request.interpreters)
    choose.require_known_styles(request.styles)
    start = _start_weights(request, workloads)
    seen = []
    for name, interpreter in chosen:
        (preparation or PreparationObserver()).asking(
            name if interpreter.label == "default" else f"{name}@{interpreter.label}"
        )
        seen.append(ask(interpreter, name))
    choose.require_answers(seen)
    sided = []
    refused = []
    for workload in workloads:
        able, unable = choose.choose_sides(
            workload, seen, request.styles, request.devices, precision, request.settings
        )
        sided.append((workload, able))
        refused += [f"left out: {refusal}" for refusal in unable]
    return Selection(sided, seen, list(dict.fromkeys(refused)), start)


def _require_consistent(request: RunRequest) -> None:
    if request.published:
        for field in (
            "epochs",
            "steps",
            "dataset",
            "dataset_repeats",
            "protocol",
            "weights_from",
            "until",
            "size",
        ):
            if getattr(request, field) is not None:
                option = f"--{field.replace('_', '-')}"
                raise UsageError(
                    f"{option} can't be combined with --published",
                    fix="The published protocol fixes it.",
                )
    if request.protocol is not None and request.protocol not in get_args(Protocol):
        raise UnknownName("protocol", request.protocol, get_args(Protocol))
    if request.epochs is not None and request.steps is not None:
        raise UsageError("--epochs and --steps can't be combined", fix="Use one of them.")


def _require_priced(prices: Mapping[str, float], selection: Selection) -> None:
    every_side = itertools.chain.from_iterable(sides for _, sides in selection.able)
    devices = list(dict.fromkeys(side.device for side in every_side))
    for device in prices:
        if device not in devices:
            problem = f"--price is given for {device!r}, but no run uses it"
            raise UsageError(problem, expected=f"one of {', '.join(devices)}", found=device)


def scheduled(workload: Workload, request: RunRequest) -> Workload:
    """Return the workload with the changes that the options make."""
    if request.dataset:
        workload = dataclasses.replace(workload, dataset=request.dataset)
    if request.size is not None:
        workload = request.size.of(workload)
    require_fit(workload)
    if request.published and workload.published is None:
        raise UsageError(
            f"there are no published figures for {workload.name!r}",
            fix="Run it without --published.",
        )
    _require_seed_of_pytorch(workload, request)
    options = {
        name: getattr(request, name)
        for name in ("epochs", "steps", "dataset_repeats", "protocol", "until")
    }
    changes = {name: value for name, value in options.items() if value is not None}
    if request.until is not None:
        if (request.protocol or workload.schedule.protocol) == "continued":
            raise UsageError(
                f"--until can't be combined with {workload.name}'s continued protocol",
                fix="Use --protocol fresh.",
            )
        changes["evaluate"] = "every-epoch"
        if request.epochs is None and request.steps is None:
            changes["epochs"] = MOST_EPOCHS_UNTIL
    if changes.keys() & {"epochs", "steps"}:
        changes.setdefault("steps", None)
        # Batches drawn with replacement make no passes, so the workload keeps its own epoch.
        if workload.schedule.shuffle != "with-replacement":
            changes["steps_per_epoch"] = None
    workload = workload.with_schedule(**changes)
    if request.dataset_repeats is not None and workload.schedule.steps_per_epoch is not None:
        raise UsageError(
            f"--dataset-repeats has no effect on {workload.name}",
            expected="epochs that pass over the whole dataset",
            found=f"epochs of {workload.schedule.steps_per_epoch:,} steps",
            fix="Use --epochs instead.",
        )
    return workload


def _of_other_precisions(workload: Workload, request: RunRequest) -> list[str]:
    """Return a notice of each published run whose figures don't apply to the precision."""
    published = workload.published.runs if request.published and workload.published else ()
    return [
        f"the figures of {workload.name}, {run.name}, are for {' and '.join(run.precisions)}, "
        f"not {request.precision}; "
        f"to compare with them: --precision {run.precisions[0]}"
        for run in published
        if run.precisions and request.precision not in run.precisions
    ]


def _require_seed_of_pytorch(workload: Workload, request: RunRequest) -> None:
    """Raise an error for options that have no effect with a ``pytorch_seed``.

    It fixes the random numbers of every repeat.
    """
    if request.published and workload.published:
        seeds = [each.pytorch_seed for each in workload.published.runs]
    else:
        seeds = [workload.schedule.pytorch_seed]
    seed = next((each for each in seeds if each is not None), None)
    other = request.settings.seed not in (Settings().seed, seed)
    for option, given in (("--seed", other), ("--repeats", (request.repeats or 1) > 1)):
        if given and seed is not None:
            raise UsageError(
                f"{option} has no effect on {workload.name}",
                expected=f"one training with its pytorch_seed, {seed}, which fixes all random "
                "numbers",
                fix=f"Omit {option}, or "
                f"{'--published' if request.published else 'pytorch_seed in the workload'}.",
            )


def locate_one(
    request: RunRequest, workload: Workload, preparation: PreparationObserver | None = None
) -> Located:
    """Return the dataset of ``workload``; raises DataError if it is not found, or damaged."""
    return locate_all(request, [workload], preparation)[0][workload.dataset].windows(
        workload.input.length
    )


def locate_all(
    request: RunRequest, workloads: list[Workload], preparation: PreparationObserver | None = None
) -> tuple[dict[str, Located], list[str]]:
    """Return every needed dataset by name, and a notice of a replacement.

    Synthetic digits replace a dataset only if the user named nothing.

    Raises:
        DataError: a dataset that is not found, or damaged.
    """
    located: dict[str, Located] = {}
    progress = preparation or PreparationObserver()
    find = partial(
        locate,
        named=request.data_dir,
        environment=request.environment,
        cache=request.cache,
        progress=progress,
    )
    for workload in workloads:
        if workload.dataset in located:
            continue
        try:
            located[workload.dataset] = find(workload.dataset)
        except DataUnavailable:
            if request.workloads or request.specification or request.dataset or request.published:
                raise
            located[workload.dataset] = find(STAND_IN)
            name = workload.dataset
            remedy = (
                f"to use it: --data-dir DIR, TRAINMARK_DATA=DIR, or trainmark data fetch {name}"
            )
            return located, [f"{name} was not found; using generated {STAND_IN} instead ({remedy})"]
    return located, []


def _start_weights(request: RunRequest, workloads: list[Workload]) -> tuple[Path, str] | None:
    if request.weights_from is None:
        return None
    if not regular.is_file(request.weights_from):
        raise UsageError(
            f"no record at {request.weights_from}",
            expected="the record of a run with --save-weights",
            found=regular.found_at(request.weights_from),
        )
    record = store.read(request.weights_from)
    file = request.weights_from.with_suffix(".safetensors")  # whatever the record's id is
    if not regular.is_file(file):
        problem = f"the record {record.id} has no weights"
        raise UsageError(problem, expected=str(file), fix="Train it again with --save-weights.")
    for workload in workloads:
        weights.load_for(lay_out(workload), file)
    return file.resolve(), record.id


def _courses(
    workload: Workload,
    dataset: Located,
    sides: list[Side],
    selection: Selection,
    request: RunRequest,
) -> list[tuple[ScheduledWorkload, list[Side]]]:
    if not request.published or workload.published is None:
        repeats = request.repeats or (
            DEFAULT_REPEATS if workload.schedule.pytorch_seed is None else 1
        )
        return [(ScheduledWorkload(workload, dataset, repeats), sides)]
    scheduled_workloads = []
    for run in workload.published.runs:
        fitting = [side for side in sides if run.only_on in (None, selection.kind_of(side))]
        if request.repeats is not None and run.protocol == "continued":
            raise UsageError(
                f"--repeats can't change the published run {run.name!r} of {workload.name}",
                expected=f"its {run.repeats} repeats, each of which continues the previous one",
            )
        if fitting:
            scheduled = ScheduledWorkload(
                workload.scheduled_as(run), dataset, request.repeats or run.repeats, run.name
            )
            scheduled_workloads.append((scheduled, fitting))
    return scheduled_workloads
