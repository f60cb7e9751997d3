"""The command ``trainmark``: finds the verb and turns errors into exit codes."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.cli import interrupts
from trainmark.cli.streams import ReaderGone, stand_on_three
from trainmark.errors import TrainmarkError, UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from click.shell_completion import CompletionItem

    from trainmark.cli.configuration.settings import Configuration

OK = 0
"""Exit code of a command that did what it was asked."""
FAILED = 1
"""Exit code if a run or a check failed."""
USAGE = 2
"""Exit code if the command line or its input is wrong, as click has it."""
MISSED_BAR = 3
"""Exit code of ``compare --fail-below`` if a group is too slow."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 and the number of SIGINT."""
_START_FIELD = 19
"""Place of a process's start, in clock ticks, among the fields after its name in Linux's /proc."""

VERBS = {
    "doctor": "Check this machine, and print a fix for each problem.",
    "run": "Train workloads on backends and devices, record each run, and compare them.",
    "measure": "Measure any command, in any language, in interleaved rounds.",
    "compare": "Compare records: speed-ups with intervals, verdicts, accuracy, caveats.",
    "explain": "Explain why training is slow or does not learn, and what to do about it.",
    "report": "Write records as one page with the answer, tables and charts.",
    "export": "Write records for other tools: CSV, Markdown, TensorBoard, MLflow.",
    "parity": "Check step by step that backends compute what the definition says.",
    "scale": "Measure data parallelism and pipelines.",
    "noise": "Show how small a difference this machine can detect, and how long that takes.",
    "sweep": "Train with many hyper-parameters, several trials at a time, and show which are best.",
    "predict": "Predict the test set or continue a text with trained weights.",
    "show": "Show a workload's layers and cost, or one record.",
    "list": "List workloads, backends, devices or datasets.",
    "data": "List, fetch, verify or show datasets.",
    "schema": "Print the JSON Schema of a record.",
    "config": "Show which options apply, and where each comes from.",
}

EPILOG = """\b
Examples:
  trainmark run                                  the default benchmark: one network on every device
  trainmark run mnist-cnn --device cpu,cuda:0    one workload, two devices
  trainmark compare trainmark-results/           the table of earlier runs

\b
Exit codes: 0 done; 1 a run failed, or doctor, parity or scale reports FAIL; 2 usage; 3 below the
--fail-below bar; 130 interrupted.
Options may also come from TRAINMARK_OPTION or a file: `trainmark config --help`.
"""


class Verbs(click.Group):
    """Looks up verbs by name.

    A verb's file is imported when it is called, so that ``--help`` is quick.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return all verbs, in the order of the help."""
        return list(VERBS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        """Import and return the verb's command."""
        return self.verb(cmd_name) if cmd_name in VERBS else None

    def verb(self, name: str) -> click.Command:
        """Import and return the command of the verb ``name``."""
        command: click.Command = importlib.import_module(f"trainmark.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does, but suggest verbs, and apply options from file and environment."""
        if args and args[0] == "help":
            args = [*args[1:2], "--help"] if args[1:] else []
        if not args:
            raise click.exceptions.NoArgsIsHelpError(ctx)
        if args[0] not in VERBS and not ctx.resilient_parsing:
            raise unknown("command", args[0], VERBS)
        # Behind the two dashes, a command has its own options.
        own = args[: args.index("--")] if "--" in args else args
        if not ctx.resilient_parsing and not {"--help", "-h"}.intersection(own):
            command = self.configured(ctx, args[0])
            if args[0] != "config":  # it shows what counts, and where from
                self._announce_file(ctx, command, args)
        return super().resolve_command(ctx, args)

    def configuration(self, ctx: click.Context) -> Configuration:
        """The options in the nearest file, which is read once per command line."""
        from trainmark.cli.configuration import search
        from trainmark.study.options import working_folder

        kept = ctx.find_root().meta
        if "configuration" not in kept:
            kept["configuration"] = search.find(working_folder())
        found: Configuration = kept["configuration"]
        return found

    def configured(self, ctx: click.Context, verb: str) -> click.Command:
        """Return the command of ``verb``, with defaults from the environment and the file.

        Raises:
            UsageError: no such verb, or the file has a value that its option does not accept.
        """
        from trainmark.cli.configuration.named_options import options_of, variable_of

        if verb not in VERBS:
            raise unknown("command", verb, VERBS)
        command = self.verb(verb)
        for option in options_of(command).values():
            option.envvar = variable_of(option)
        root = ctx.find_root()
        file = self.configuration(ctx)
        root.default_map = {
            **(root.default_map or {}),
            verb: file.defaults(verb, VERBS, self.verb),
        }
        return command

    def _announce_file(self, ctx: click.Context, command: click.Command, args: list[str]) -> None:
        """Print which file applies, and what of it or of nearer ones is ignored."""
        from trainmark.cli.configuration import messages

        verb = args[0]
        file = self.configuration(ctx)
        messages.print_ignored(file, file.withheld(verb, self.verb))
        if (ctx.find_root().default_map or {}).get(verb):
            made = command.make_context(verb, args[1:], parent=ctx, resilient_parsing=True)
            messages.print_applied(file, made)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """List the verbs without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete verbs and options without importing a verb."""
        from click.shell_completion import CompletionItem

        verbs = [
            CompletionItem(name, help=text)
            for name, text in VERBS.items()
            if name.startswith(incomplete)
        ]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)


def _say_version(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from trainmark.version import version

        click.echo(f"trainmark {version()}")
        context.exit()


@click.group(cls=Verbs, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_say_version,
    help="Show the version and exit.",
)
def command() -> None:
    """Is the GPU worth it, does it learn the same thing, and if it is slow, why?

    trainmark trains the same network, from the same weights, with several frameworks, on several
    devices and machines, and compares time and accuracy.
    """


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for an unknown option or verb, with what to use instead."""
    from trainmark.cli.elsewhere import ANSWERS

    if name in ANSWERS:
        return UsageError(f"unknown {kind} {name}", fix=ANSWERS[name])
    near = nearest(name, known)
    fix = f"Did you mean {' or '.join(near)}?" if near else ""
    return UsageError(f"unknown {kind} {name[:100]!r}", fix=fix)


def _in_our_words(error: click.ClickException) -> UsageError:
    """Turn a click error into one in the style of trainmark's errors."""
    context = getattr(error, "ctx", None)
    message = error.format_message().removesuffix(".")
    found = UsageError(f"{message[:1].lower()}{message[1:]}")
    if context is None:
        return found
    if isinstance(error, click.NoSuchOption):
        flags = itertools.chain.from_iterable(each.opts for each in context.command.params)
        known = [flag for flag in flags if flag.startswith("--")]
        found = unknown("option", error.option_name, known)
    found.fix = found.fix or f"See `{context.command_path} --help`."
    return found


def main() -> None:
    """Run the command line and exit with its exit code."""
    stand_on_three()
    interrupts.install()
    code = run(sys.argv[1:], time.perf_counter() - _age())
    interrupts.forget()
    sys.exit(code)


def _age() -> float:
    """Return for how many seconds this process has run: starting Python takes time, too.

    The result is 0 if the system doesn't tell.
    """
    try:
        fields = Path("/proc/self/stat").read_text(errors="replace").rpartition(")")[2].split()
        started = int(fields[_START_FIELD]) / os.sysconf("SC_CLK_TCK")
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - started, 0.0)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def run(arguments: list[str], began: float | None = None) -> int:
    """Run one command line.

    Args:
        began: reading of ``time.perf_counter`` at which its time limit begins; None is now.

    Returns:
        The exit code.
    """
    began = time.perf_counter() if began is None else began
    try:
        # See `cli.options.began`.
        code = command.main(arguments, prog_name="trainmark", standalone_mode=False, obj=began)
        return code if isinstance(code, int) else OK
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        return _print_error(_in_our_words(error))
    except TrainmarkError as error:
        return _print_error(error)
    except (KeyboardInterrupt, click.Abort):
        click.echo("trainmark: interrupted", err=True)
        return INTERRUPTED
    except ReaderGone:
        return OK


def _print_error(error: TrainmarkError) -> int:
    """Print ``error``; returns the exit code."""
    from trainmark.cli.output import print_message

    print_message(str(error))
    return USAGE if isinstance(error, UsageError) else FAILED
