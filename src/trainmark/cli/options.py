"""Options that several verbs share, and how their values are read."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from trainmark.cli import complete
from trainmark.errors import UsageError
from trainmark.execute.parent.bounds import MOST_ROUNDS, MOST_SEED, MOST_THREADS

if TYPE_CHECKING:
    from trainmark.execute.parent.probe import Interpreter
    from trainmark.workload.schedule import Target

_LONGEST_LABEL = 200
DEFAULT_OUT = Path("trainmark-results")

Decorator = Callable[[Any], Any]

data_dir_option: Decorator = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder with the datasets; takes precedence over TRAINMARK_DATA, the cache and the mirrors.",
)
dataset_option: Decorator = click.option(
    "--dataset",
    metavar="NAME",
    shell_complete=complete.one_of(complete.datasets),
    help="Another dataset of the same shape, such as synthetic-digits.",
)
precision_option: Decorator = click.option(
    "--precision",
    default="fp32",
    show_default=True,
    metavar="NAME",
    shell_complete=complete.one_of(complete.precisions),
    help="fp32, tf32, bf16, fp16 or fp64.",
)
threads_option: Decorator = click.option(
    "--threads",
    type=click.IntRange(1, MOST_THREADS),
    metavar="N",
    help="CPU threads.  [default: the framework's choice]",
)
python_option: Decorator = click.option(
    "--python", "pythons", multiple=True, metavar="LABEL=PATH", help="Another interpreter, for --backend NAME@LABEL."
)
timeout_option: Decorator = click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    help="Seconds a process may take.  [default: no limit]",
)
resume_option: Decorator = click.option("--resume", is_flag=True, help="Run only what has no record in --out yet.")
price_option: Decorator = click.option(
    "--price", "prices", multiple=True, metavar="DEVICE=PER_HOUR", help="Price of an hour, such as cuda:0=2.49."
)
until_stable_option: Decorator = click.option(
    "--until-stable",
    type=click.FloatRange(0, 100, min_open=True),
    metavar="PERCENT",
    help="Add rounds until every interval is within ±PERCENT; at least 5, at most 50.",
)


def conditions_options(command: Any) -> Any:
    """How and with what a study trains: --precision, --threads, --python, --dataset, --timeout."""
    for option in (timeout_option, dataset_option, python_option, threads_option, precision_option):
        command = option(command)
    return command


def count_option(
    flag: str, text: str, default: int | None = None, least: int = 1, most: int | None = None
) -> Decorator:
    """An option that takes a number of things."""
    shown: dict[str, Any] = {} if default is None else {"default": default, "show_default": True}
    made: Decorator = click.option(flag, type=click.IntRange(least, most), metavar="N", help=text, **shown)
    return made


def seed_option(of: str) -> Decorator:
    """``--seed``, and what it is the seed of."""
    return count_option("--seed", of, default=1, least=0, most=MOST_SEED)


def repeats_option(text: str = "Rounds.", default: int | None = 5) -> Decorator:
    """``--repeats``, with its help."""
    return count_option("--repeats", text, default, most=MOST_ROUNDS)


def out_option(text: str = "Folder for the records.") -> Decorator:
    """``--out``, with its help."""
    made: Decorator = click.option(
        "--out", type=click.Path(path_type=Path), default=DEFAULT_OUT, show_default=True, metavar="DIR", help=text
    )
    return made


def _read_labels(ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:  # noqa: ARG001
    labels: dict[str, str] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and key and value and text.isprintable()) or len(text) > _LONGEST_LABEL:
            raise UsageError(
                f"--label {text[:_LONGEST_LABEL]!r} can't be read",
                expected=f"KEY=VALUE of at most {_LONGEST_LABEL} printable characters, such as instance=g5.xlarge",
            )
        labels[key] = value
    return labels


label_option: Decorator = click.option(
    "--label",
    "labels",
    multiple=True,
    callback=_read_labels,
    metavar="KEY=VALUE",
    help="Label of this machine for its records, such as instance=g5.xlarge; may be repeated.",
)


def split_names(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG001
    """``a,b`` and repeated options alike, in order, each once."""
    return tuple(dict.fromkeys(name.strip() for part in value for name in part.split(",") if name.strip()))


def names_option(flag: str, text: str, metavar: str) -> Decorator:
    """An option that takes a list of names."""
    made: Decorator = click.option(
        flag,
        multiple=True,
        callback=split_names,
        metavar=metavar,
        shell_complete=complete.some_of(complete.NAMES[flag]),
        help=text,
    )
    return made


def name_option(flag: str, text: str) -> Decorator:
    """An option that takes one name."""
    made: Decorator = click.option(
        flag, metavar="NAME", shell_complete=complete.one_of(complete.NAMES[flag]), help=text
    )
    return made


def _split_pair(_context: click.Context, param: click.Parameter, text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    key, sign, value = text.partition("=")
    if not (key and sign and value):
        raise click.BadParameter(f"expected KEY=VALUE such as device=cpu, found {text!r}", param=param)
    return key, value


baseline_option: Decorator = click.option(
    "--baseline", metavar="KEY=VALUE", callback=_split_pair, help="Reference of the speed-ups, such as device=cpu."
)


def read_interpreters(texts: Iterable[str]) -> tuple[Interpreter, ...]:
    """What was given with --python; raises :class:`~trainmark.errors.UsageError`."""
    return tuple(_interpreter(text) for text in texts)


def read_target(text: str | None) -> Target | None:
    """What was given with --until; raises :class:`~trainmark.errors.UsageError`."""
    from trainmark.errors import UnknownName
    from trainmark.workload.decode import Misfit
    from trainmark.workload.schedule import Quantity, Target

    if text is None:
        return None
    written = re.fullmatch(r"\s*(\w+)\s*(>=|<=)\s*([0-9.eE+-]+)\s*", text)
    quantities = get_args(Quantity)
    if written and written[1] not in quantities:
        raise UnknownName("quantity", written[1], quantities)
    try:
        target = Target(written[1], float(written[3])) if written else None  # type: ignore[arg-type]
    except (ValueError, Misfit):
        target = None
    if target is None or written is None or (written[2] == ">=") != target.is_accuracy:
        raise UsageError(
            f"--until {text!r} can't be read",
            expected="an accuracy as a fraction, such as test_accuracy>=0.98, or a loss, such as train_loss<=0.05",
            fix="Quote it: the shell interprets > and <.",
        )
    return target


def read_prices(texts: Iterable[str]) -> dict[str, float]:
    """What was given with --price; raises :class:`~trainmark.errors.UsageError`."""
    prices: dict[str, float] = {}
    for text in texts:
        device, _, price = text.partition("=")
        try:
            prices[device.strip()] = float(price)
        except ValueError:
            prices[device.strip()] = math.nan
        if not device.strip() or not 0 <= prices[device.strip()] < math.inf:
            raise UsageError(
                f"--price {text!r} can't be read",
                expected="DEVICE=PER_HOUR with a price of 0 or more, such as cuda:0=2.49 or cpu=0.10",
                found=repr(text),
            )
    return prices


def environment_dir() -> Path | None:
    """The folder that TRAINMARK_DATA names."""
    folder = os.environ.get("TRAINMARK_DATA")
    return Path(folder) if folder else None


def working_folder() -> Path:
    """Where this was started."""
    try:
        return Path.cwd()
    except OSError as error:
        raise UsageError(
            "the working folder no longer exists", found=error.strerror or str(error), fix="cd to another."
        ) from error


def _interpreter(text: str) -> Interpreter:
    from trainmark.execute.parent.probe import Interpreter

    label, separator, path = text.partition("=")
    if not separator or not label or not path or "@" in label or label == "default":
        raise UsageError(f"--python {text!r} can't be read", expected="LABEL=/path/to/bin/python", found=repr(text))
    # Not resolved: a virtual environment's python is a link, and following it would leave the environment.
    place = Path(os.path.expanduser(path))  # noqa: PTH111  (Path's own ends where there is no such user)
    return Interpreter(label, place if place.is_absolute() else working_folder() / place)
