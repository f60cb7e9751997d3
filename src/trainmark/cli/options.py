"""Options that several verbs share."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from trainmark.cli import complete
from trainmark.cli.configuration.named_options import TrustedOption
from trainmark.cli.output import export_options, json_option, legend_option
from trainmark.execute.parent.bounds import MOST_ROUNDS, MOST_SEED, MOST_THREADS
from trainmark.masking import mask_command_line
from trainmark.workload.precision import listed

if TYPE_CHECKING:
    from trainmark.execute.parent.request import RunRequest
    from trainmark.study.run import RoundOptions

DEFAULT_OUT = Path("trainmark-results")
PATH = click.Path(path_type=Path)

Decorator = Callable[[Any], Any]


def number_option(
    flag: str,
    text: str,
    kind: click.ParamType[Any] | type[float],
    *others: str,
    default: float | None = None,
    metavar: str = "N",
) -> Decorator:
    """Return an option that takes a number; ``others`` are its other names."""
    return click.option(
        flag,
        *others,
        type=kind,
        default=default,
        show_default=True,
        metavar=metavar,
        help=text,
        callback=_finite,
    )


def _finite(
    ctx: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    value: float | None,
) -> float | None:
    """Reject ``nan``, which is in every range, and ``inf``."""
    if isinstance(value, float) and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.")
    return value


def count_option(
    flag: str, text: str, default: int | None = None, least: int = 1, most: int | None = None
) -> Decorator:
    """Return an option that takes a count."""
    return number_option(flag, text, click.IntRange(least, most), default=default)


def name_option(flag: str, text: str, default: str | None = None) -> Decorator:
    """Return an option that takes one name."""
    known = complete.one_of(complete.NAMES[flag])
    return click.option(
        flag, default=default, show_default=True, metavar="NAME", shell_complete=known, help=text
    )


def split_names(
    ctx: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    value: tuple[str, ...],
) -> tuple[str, ...]:
    """Merge ``a,b`` and repeated options: each name once, in order."""
    names = (name.strip() for name in ",".join(value).split(","))
    return tuple(dict.fromkeys(filter(None, names)))


def names_option(
    flag: str, text: str, metavar: str, cls: type[click.Option] = click.Option
) -> Decorator:
    """Return an option that takes a list of names."""
    known = complete.some_of(complete.NAMES[flag])
    return click.option(
        flag,
        cls=cls,
        multiple=True,
        callback=split_names,
        metavar=metavar,
        shell_complete=known,
        help=text,
    )


def _default_folder(
    ctx: click.Context, _parameter: click.Parameter, paths: tuple[Path, ...]
) -> tuple[Path, ...]:
    if paths or ctx.resilient_parsing:
        return paths
    if not DEFAULT_OUT.is_dir():
        raise click.UsageError(f"no records given, and there is no {DEFAULT_OUT} here", ctx)
    return (DEFAULT_OUT,)


records_argument: Decorator = click.argument(
    "paths", metavar="[RECORD]...", nargs=-1, type=PATH, callback=_default_folder
)
data_dir_option: Decorator = click.option(
    "--data-dir",
    type=PATH,
    metavar="DIR",
    help="Folder with the datasets; takes precedence over TRAINMARK_DATA, the cache and the "
    "mirrors.",
)
dataset_option = name_option(
    "--dataset", "Another dataset of the same shape, such as synthetic-digits."
)
precision_option = name_option("--precision", f"{listed()}.", default="fp32")
size_option: Decorator = click.option(
    "--size",
    metavar="KEY=N,...",
    help="Train a smaller network of the same kind: width, depth, batch, length (tokens) or crop "
    "(pixels).",
)
threads_option = count_option(
    "--threads", "CPU threads.  [default: the framework's choice]", most=MOST_THREADS
)
python_option: Decorator = click.option(
    "--python",
    "pythons",
    cls=TrustedOption,
    multiple=True,
    metavar="LABEL=PATH",
    help="Another interpreter, for --backend NAME@LABEL.",
)
timeout_option = number_option(
    "--timeout",
    "Time limit per process, in seconds.  [default: none]",
    click.FloatRange(0, min_open=True),
    metavar="S",
)
copy_limit_option = number_option(
    "--copy-limit",
    "Size limit of a copied working folder, in GiB; on Linux 6.2 or newer large files are linked.",
    click.FloatRange(0, min_open=True),
    default=1.0,
    metavar="GIB",
)
resume_option: Decorator = click.option(
    "--resume", is_flag=True, help="Skip recorded runs of the newest plan in --out."
)
price_option: Decorator = click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="DEVICE=PER_HOUR",
    help="Price per hour, such as cuda:0=2.49.",
)
baseline_option: Decorator = click.option(
    "--baseline", metavar="KEY=VALUE", help="Reference for the speed-ups, such as device=cpu."
)
margin_option = number_option(
    "--margin",
    "Speed differences up to this count as the same.",
    click.FloatRange(0),
    default=3.0,
    metavar="PERCENT",
)


def budget_option(default: float = 90.0) -> Decorator:
    """Return ``--budget``, with its default."""
    text = (
        "Seconds for the whole command, start-up included: rounds are added until the verdict is "
        "decided. Trainings that would take longer are shortened. 0 runs all of --repeats."
    )
    return number_option("--budget", text, click.FloatRange(0), default=default, metavar="S")


def conditions_options(command: Any) -> Any:
    """Add --precision, --threads, --python, --dataset and --timeout, a study's conditions."""
    for option in (timeout_option, dataset_option, python_option, threads_option, precision_option):
        command = option(command)
    return command


def seed_option(of: str) -> Decorator:
    """Return ``--seed``; ``of`` says what it seeds."""
    return count_option("--seed", of, default=1, least=0, most=MOST_SEED)


def repeats_option(text: str = "Rounds.", default: int | None = 5) -> Decorator:
    """Return ``--repeats``, with its help and the names that other tools use for it."""
    kind = click.IntRange(1, MOST_ROUNDS)
    others = ("-n", "--runs", "--rounds", "repeats")
    return number_option("--repeats", text, kind, *others, default=default)


backends_option: Decorator = names_option(
    "--backend",
    "Backends; NAME@LABEL runs in --python LABEL.  [default: the best installed]",
    "a,b@LABEL",
)


def out_option(text: str = "Folder for the records.") -> Decorator:
    """Return ``--out``, with its help."""
    return click.option(
        "--out",
        cls=TrustedOption,
        type=PATH,
        default=DEFAULT_OUT,
        show_default=True,
        metavar="DIR",
        help=text,
    )


dry_run_option: Decorator = click.option(
    "--dry-run", is_flag=True, help="Show what would run, without running it."
)
quiet_option: Decorator = click.option(
    "-q", "--quiet", is_flag=True, help="Show only results and errors."
)


def results_options(command: Any) -> Any:
    """Add the options for results: --out, --dry-run, the exports, --legend, --quiet, --json."""
    # Options are listed in the reverse order in which they are added.
    command = json_option(command)
    command = quiet_option(command)
    command = legend_option(command)
    command = export_options(command)
    command = dry_run_option(command)
    return out_option()(command)


def _read_labels(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    if not texts:
        return {}  # shell completion also calls this, and must not wait for imports
    from trainmark.study.options import read_labels

    return read_labels(texts)


label_option: Decorator = click.option(
    "--label",
    "labels",
    multiple=True,
    callback=_read_labels,
    metavar="KEY=VALUE",
    help="Label of this machine for its records, such as instance=g5.xlarge; may be repeated.",
)


def request_of(options: Mapping[str, Any]) -> RunRequest:
    """Return the request that a verb's options make.

    Raises:
        UsageError: an option can't be read or is out of bounds.
    """
    from trainmark.study import options as study

    return study.request_of(options, masked_command_line())


def round_options(options: Mapping[str, Any]) -> RoundOptions:
    """Return the options that concern rounds; raises :class:`~trainmark.errors.UsageError`."""
    from trainmark.study.rounds import Budget
    from trainmark.study.run import RoundOptions

    # A default must not shorten the trainings that the user asks for.
    asks_for_trainings = _is_given("repeats") or options["resume"] or options.get("published")
    budget = Budget(
        options["budget"],
        options["margin"] / 100,
        keeps_repeats=bool(asks_for_trainings) and not _is_given("budget"),
    )
    goes_on = options.get("ignore_failure", True)
    return RoundOptions(
        options["resume"],
        budget,
        options["labels"],
        dry_run=options["dry_run"],
        goes_on=goes_on,
        began=began(),
    )


def _is_given(name: str) -> bool:
    """Return whether an option was given, in any way."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not ParameterSource.DEFAULT


def began() -> float | None:
    """Return the reading of ``time.perf_counter`` at the start of the command, if known."""
    found = click.get_current_context().find_root().obj
    return found if isinstance(found, float) else None


def masked_command_line() -> str:
    """Return this command line, quoted for a shell, with secrets masked."""
    return mask_command_line(["trainmark", *sys.argv[1:]])
