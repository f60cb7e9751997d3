"""The command ``trainmark``: finds the verb, and turns errors into exit codes."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import click

from trainmark.cli import interrupts
from trainmark.cli.streams import ReaderGone, stand_on_three
from trainmark.errors import TrainmarkError, UnknownName, UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

OK, FAILED, USAGE, MISSED_BAR, INTERRUPTED = 0, 1, 2, 3, 130

VERBS = {
    "doctor": "Check this machine, and print a fix for each problem.",
    "run": "Train workloads on backends and devices, keep a record of each run, compare them.",
    "measure": "Measure any command, in any language, in interleaved rounds.",
    "compare": "Compare records: speed-ups with intervals, verdicts, accuracy, caveats.",
    "explain": "Explain why training is slow or does not learn, and what to do about it.",
    "report": "Write records as one page with the answer, tables and charts.",
    "export": "Write records for other tools: CSV, Markdown, TensorBoard, MLflow.",
    "parity": "Check that backends, styles and devices compute the same losses.",
    "scale": "Measure data parallelism and pipelines.",
    "noise": "Show how small a difference this machine can show, in how much time.",
    "sweep": "Train with many hyper-parameters, several trials at a time, and show which are best.",
    "predict": "Predict the test set with trained weights: accuracy, confusions, pictures.",
    "show": "Show a workload's layers and cost, or one record.",
    "list": "List workloads, backends, devices or datasets.",
    "data": "List, fetch, verify or show datasets.",
    "schema": "Print the JSON Schema of a record.",
}

REMOVED = {
    "--max-restarts": "Use scale --resume, which runs what failed again",
    "--until-stable": "Use --budget, such as --budget 300, and --margin",
    "--cloud": "Use --label, such as --label instance=g5.xlarge",
    "--link": "trainmark reports what it measured: run the layouts on that network (docs/scaling.md)",
    "--prediction": "trainmark reports what it measured: run the layouts (docs/scaling.md)",
    "completion": 'Use eval "$(_TRAINMARK_COMPLETE=bash_source trainmark)" (docs/install.md)',
    "container": "Build the CPU image in a clone: docker build -f docker/Dockerfile -t trainmark:cpu "
    "--build-arg TORCH_INDEX=URL . (docs/containers.md has the URL and the CUDA image)",
}
"""Verbs and options of older versions, and what to use instead."""

EPILOG = """\b
Examples:
  trainmark run                                  the default benchmark: one network on every device
  trainmark run mnist-cnn --device cpu,cuda:0    one workload, two devices
  trainmark compare trainmark-results/           the table of earlier runs

\b
Exit codes: 0 done; 1 a run failed, or doctor, parity or scale reports FAIL; 2 usage; 3 below the --fail-below bar;
130 interrupted.
"""


class Verbs(click.Group):
    """The verbs by name; a verb's file is imported when it is called, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All verbs, in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The verb's command, imported now."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"trainmark.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest verbs suggested."""
        if args and args[0] not in VERBS and not ctx.resilient_parsing:
            if args[0] in REMOVED:
                raise _removed(args[0])
            raise UnknownName("command", args[0], VERBS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs and options, without importing a verb."""
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(name, help=text) for name, text in VERBS.items() if name.startswith(incomplete)]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)


def _say_version(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from trainmark.version import version

        click.echo(f"trainmark {version()}")
        context.exit()


@click.group(cls=Verbs, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_say_version,
    help="Show the version and exit.",
)
def command() -> None:
    """Is the GPU worth it, does it learn the same thing, and if it is slow, why?

    trainmark trains the same network, from the same weights, with several frameworks, on several devices and
    machines, and compares time and accuracy.
    """


def _removed(name: str) -> UsageError:
    return UsageError(f"{name} was removed", fix=REMOVED[name])


def main() -> None:
    """Run the command line and exit with its exit code."""
    stand_on_three()
    interrupts.hear()
    code = run(sys.argv[1:])
    interrupts.forget()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line; returns its exit code."""
    try:
        code = command.main(arguments, prog_name="trainmark", standalone_mode=False)
        return code if isinstance(code, int) else OK
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption) and error.option_name in REMOVED:
            click.echo(f"trainmark: {_removed(error.option_name)}", err=True)
        else:
            error.show()
        return USAGE
    except TrainmarkError as error:
        from trainmark.report.printable import printable

        click.echo(f"trainmark: {printable(str(error))}", err=True)
        return USAGE if isinstance(error, UsageError) else FAILED
    except (KeyboardInterrupt, click.Abort):
        click.echo("trainmark: interrupted", err=True)
        return INTERRUPTED
    except ReaderGone:
        return OK
