"""Runs of a user's command: placeholders make the sides of a comparison."""

from __future__ import annotations

import hashlib
import itertools
import json
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainmark import regular
from trainmark.errors import UnknownName, UsageError
from trainmark.execute.parent.plan import Settings
from trainmark.execute.parent.probe import THIS
from trainmark.execute.protocol.requests import RunScript
from trainmark.record.facts import FACTS, RunKey

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LARGEST_PROGRAM = 100 << 20
DEVICE, SEED = "device", "seed"


@dataclass(frozen=True)
class CommandSide:
    """One side of a comparison.

    Args:
        values: of the placeholders, except the seed, which changes with the round.
        environment: additional environment variables of the command.
    """

    values: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def device(self) -> str | None:
        """The device as the command gets it; None if it gets none."""
        return self.values.get(DEVICE)

    @property
    def style(self) -> str | None:
        """The varied values besides the device, such as ``workers=4``; None if there are none."""
        return " ".join(f"{name}={value}" for name, value in self.values.items() if name != DEVICE) or None

    @property
    def title(self) -> str:
        """Title for the user."""
        return " ".join(f"{name}={value}" for name, value in self.values.items()) or FACTS["style"].unknown


@dataclass(frozen=True)
class Command:
    """What is measured.

    Args:
        name: name of the training.
        template: words of the command, with placeholders.
        directory: its working folder.
        inject: observe the steps of its Python processes.
        most_steps: the step after which an observed training ends; None trains to the end.
        scratch: run in a copy of the working folder.
    """

    name: str
    template: tuple[str, ...]
    directory: Path
    inject: bool = True
    most_steps: int | None = None
    scratch: bool = False

    @property
    def placeholders(self) -> frozenset[str]:
        """Names in braces."""
        return frozenset(found[1] for word in self.template for found in _PLACEHOLDER.finditer(word) if found[1])

    @property
    def fingerprint(self) -> str:
        """Equal for comparable commands: the same words, with any values of the placeholders."""
        return hashlib.sha256(json.dumps([self.name, *self.template]).encode()).hexdigest()[:16]

    def words(self, values: Mapping[str, str]) -> list[str]:
        """The command with its placeholders filled, without words that become empty; ``{{`` and ``}}`` are braces."""

        def filled(found: re.Match[str]) -> str:
            return values[found[1]] if found[1] else found[0][0]

        words = [(word, _PLACEHOLDER.sub(filled, word)) for word in self.template]
        return [found for word, found in words if found or not word]


@dataclass(frozen=True)
class CommandRun:
    """One planned run of a command.

    Args:
        blocks: number of blocks of slices after which it ends; None trains to the end.
    """

    of: Command
    side: CommandSide
    settings: Settings
    repeat: int
    round: int
    group_id: str
    session: str
    blocks: int | None = None

    @property
    def title(self) -> str:
        """What is run, for the user."""
        return f"{self.of.name} {self.side.title}" if self.side.values else self.of.name

    @property
    def turn(self) -> str:
        """Which of its side's runs this is, for the user."""
        return f"round {self.round + 1}"

    @property
    def seed(self) -> int | None:
        """The seed that the command gets; None if it gets none."""
        return self.settings.seed + self.round if SEED in self.of.placeholders else None

    @property
    def words(self) -> list[str]:
        """The command's words, with placeholders filled in."""
        return self.of.words({**self.side.values, SEED: str(self.settings.seed + self.round)})

    @property
    def program_sha256(self) -> str | None:
        """Checksum of the script among its words, else of the program if that is a path; it changes with an edit."""
        found = _script(self.words) or (self.words[0] if "/" in self.words[0] else None)
        path = self.of.directory / found if found else None
        if path is None:
            return None
        try:
            return hashlib.sha256(regular.read(path, _LARGEST_PROGRAM)).hexdigest()
        except OSError:  # such as one that can be executed but not read
            return None

    @property
    def python(self) -> Path:
        """The interpreter of the worker, which starts the command."""
        return THIS.path

    def request(self, origin: float, weight_files: Sequence[Path | None], *, in_turns: bool = False) -> RunScript:
        """The request to the worker; ``weight_files`` are of no use to a command."""
        assert not any(weight_files)
        of = self.of
        return RunScript(
            origin,
            tuple(self.words),
            in_turns,
            dict(self.side.environment),
            of.inject,
            of.most_steps,
            str(of.directory) if of.scratch else None,
        )

    @property
    def key(self) -> RunKey:
        """What it measures; used by ``--resume``."""
        command = (tuple(self.words), str(self.of.directory), self.program_sha256)
        return RunKey(step_fingerprint=self.of.fingerprint, machine=platform.node(), repeat=self.round, command=command)


def sides(command: Command, devices: Sequence[str], varied: Mapping[str, Sequence[str]]) -> list[CommandSide]:
    """Return every combination of the placeholders' values.

    Args:
        devices: values of ``{device}``; empty if the command has no such placeholder.
        varied: values by name.

    Raises:
        UsageError: a placeholder without values, or values without a placeholder.
    """
    every = {**({DEVICE: devices} if devices else {}), **varied}
    if SEED in varied:
        raise UsageError("{seed} changes with the round", fix="Use --seed N for the first round.")
    for name in sorted(command.placeholders - every.keys() - {SEED}):
        how = "--device a,b" if name == DEVICE else f"--vary {name}=a,b"
        raise UnknownName(
            "placeholder",
            name,
            [*every, SEED],
            otherwise=f"Give its values with {how}, or write {{{{{name}}}}} for the literal text.",
        )
    for name in every:
        if name not in command.placeholders:
            raise UsageError(
                f"the command does not contain {{{name}}}",
                expected=f"a word that contains {{{name}}}, such as --{name} {{{name}}}",
                found=" ".join(command.template),
            )
    return [CommandSide(dict(zip(every, values, strict=True))) for values in itertools.product(*every.values())]


def require_program(program: str, directory: Path) -> None:
    """Raise UsageError unless ``program``, the first word of a command, can be started in ``directory``."""
    if shutil.which(str(directory / program) if "/" in program else program) is None:
        raise UsageError(
            f"the command can't be started: there is no executable {program!r}",
            expected=f"a program on PATH, or its path from {directory}",
            fix="Remove the quotes: a quoted command is a single word." if " " in program else "",
        )


def name_of(words: Sequence[str]) -> str:
    """The file of a script among the words, else the program."""
    return Path(_script(words) or words[0]).name or words[0]


def _script(words: Sequence[str]) -> str | None:
    return next((word for word in words[1:] if re.search(r"\.(py|jl|R|sh|js|m|ipynb)$", word)), None)
