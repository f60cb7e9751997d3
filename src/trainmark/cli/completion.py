"""``trainmark completion``: what a shell needs to complete verbs, options and their values."""

from __future__ import annotations

import click
from click import shell_completion

from trainmark.cli.output import json_option, print_json

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_TRAINMARK_COMPLETE"

EPILOG = """\b
Examples:
  trainmark completion bash >> ~/.bashrc
  trainmark completion zsh >> ~/.zshrc
  trainmark completion fish > ~/.config/fish/completions/trainmark.fish

\b
Then open a new shell. Verbs, options, workloads, backends, devices, styles, datasets and files are completed; no
framework is imported for that. Bash must be 4.4 or newer.
"""

# Bash cuts words at : and = too, and expects only what follows; click's own script knows nothing of that, so that after
# `--device cuda:` nothing would be offered.
_BASH = """\
%(complete_func)s() {
    local line="${COMP_LINE:0:COMP_POINT}" words completion kind value
    read -ra words <<< "$line"
    [[ "$line" == *" " ]] && words+=("")
    local whole="${words[-1]}" start=""
    if [[ "$COMP_WORDBREAKS" == *:* && "$whole" == *:* ]]; then
        start="${whole%%"${whole##*:}"}" start="${start#--*=}"
    fi
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case "$kind" in
            dir | file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$start"}") ;;
        esac
    done < <(COMP_WORDS="$line" COMP_CWORD=$((${#words[@]} - 1)) %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(shell_completion.BashComplete):
    """Bash's completion, of words with colons, too."""

    source_template = _BASH

    def source(self) -> str:
        """The script; unlike click's, written without starting a Bash to ask how old it is."""
        return self.source_template % self.source_vars()


@click.command("completion", epilog=EPILOG)
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
def command(shell: str, as_json: bool) -> None:
    """Print the script that lets SHELL complete trainmark's command lines."""
    from trainmark.cli import main

    kinds = {"bash": Bash, "zsh": shell_completion.ZshComplete, "fish": shell_completion.FishComplete}
    script = kinds[shell](main.command, {}, "trainmark", VARIABLE).source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
