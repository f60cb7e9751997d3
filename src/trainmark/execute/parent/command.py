"""Runs of a user's command: placeholders make the sides of a comparison."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from trainmark import regular
from trainmark.errors import UnknownName, UsageError
from trainmark.execute.parent.plan import Settings
from trainmark.execute.parent.probe import THIS
from trainmark.execute.protocol.worker_commands import ENVIRONMENTS, NOT_COPIED, RunScript
from trainmark.inject.changes import VARIABLE as CHANGES
from trainmark.record.facts import FACTS, RunKey

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LARGEST_PROGRAM = 100 << 20
"""Most bytes of a script or program whose checksum is recorded."""
LARGEST_COPY = 1 << 30
"""Most bytes of a working folder that is copied for an experiment."""
DEVICE = "device"
"""Name of the placeholder for the device."""
SEED = "seed"
"""Name of the placeholder for the seed, which changes with the round."""
_LAUNCHERS = {
    "chrt",
    "env",
    "ionice",
    "nice",
    "nohup",
    "numactl",
    "setsid",
    "stdbuf",
    "taskset",
    "time",
    "timeout",
}


@dataclass(frozen=True)
class CommandSide:
    """One side of a comparison.

    Args:
        values: values of the placeholders, except the seed, which changes with the round.
        environment: additional environment variables of the command.
    """

    values: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.title)

    @property
    def device(self) -> str | None:
        """The device as the command gets it; None if it gets none."""
        return self.values.get(DEVICE)

    @property
    def style(self) -> str | None:
        """The varied values besides the device, such as ``workers=4``; None if there are none."""
        varied = {name: value for name, value in self.values.items() if name != DEVICE}
        return _listed({**varied, **self.environment}) or None

    @property
    def title(self) -> str:
        """Title for the user."""
        return _listed({**self.values, **self.environment}) or FACTS["style"].unknown


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
        names: set[str] = set()
        for word in self.template:
            names.update(found[1] for found in _PLACEHOLDER.finditer(word) if found[1])
        return frozenset(names)

    @property
    def fingerprint(self) -> str:
        """Fingerprint that is equal for comparable commands.

        These have the same words, with any values of the placeholders, and as many steps.
        """
        steps = [] if self.most_steps is None else [self.most_steps]
        identity = json.dumps([self.name, *self.template, *steps])
        return hashlib.sha256(identity.encode()).hexdigest()[:16]

    def words(self, values: Mapping[str, str]) -> list[str]:
        """The command with its placeholders filled, without words that become empty.

        ``{{`` and ``}}`` are braces.
        """

        def filled(found: re.Match[str]) -> str:
            return values[found[1]] if found[1] else found[0][0]

        words = [(word, _PLACEHOLDER.sub(filled, word)) for word in self.template]
        return [found for word, found in words if found or not word]


@dataclass(frozen=True)
class CommandRun:
    """One planned run of a command.

    Args:
        blocks: number of blocks of slices after which an observed training ends; None trains to the
            end.
        decided: whether its speed is known already, so that it takes part in no blocks.
        next_to_accelerator: whether this run on the CPU is compared with an accelerator, and no
            option fixes its number of threads, so that it should run with the best number.
    """

    of: Command
    side: CommandSide
    settings: Settings
    repeat: int
    round: int
    group_id: str
    session: str
    blocks: int | None = None
    decided: bool = False
    next_to_accelerator: bool = False

    @property
    def title(self) -> str:
        """What is run, for the user."""
        varies = self.side.values or self.side.environment
        return f"{self.of.name} {self.side.title}" if varies else self.of.name

    def threads_here(self, best: int | None) -> int | None:
        """Return how many CPU threads it may use; None is all.

        Args:
            best: the best number of threads, if it is known.
        """
        return self.settings.threads or best

    @property
    def is_experiment(self) -> bool:
        """Whether the script is known to make steps, and is run with or without changes to it."""
        return CHANGES in self.side.environment

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
        """Checksum of the script among its words, else of the program if that is a path.

        It changes with an edit.
        """
        found = _script(self.words) or (self.words[0] if "/" in self.words[0] else None)
        if found is None:
            return None
        try:
            content = regular.read(self.of.directory / found, _LARGEST_PROGRAM)
            return hashlib.sha256(content).hexdigest()
        except OSError:  # it may be executable but not readable
            return None

    @property
    def python(self) -> Path:
        """The interpreter of the worker, which starts the command."""
        return THIS.path

    def request(
        self,
        origin: float,
        weight_files: Sequence[Path | None],
        *,
        in_turns: bool = False,
        slices_first: bool = False,
        ends_at: float | None = None,
    ) -> RunScript:
        """The request to the worker.

        ``weight_files``, ``slices_first`` and ``ends_at`` don't apply to a command.
        """
        del slices_first, ends_at
        assert not any(weight_files)
        of = self.of
        words = tuple(self.words)
        environment = dict(self.side.environment)
        scratch = str(of.directory) if of.scratch else None
        safe = self.is_experiment and of.inject and is_protected(words)
        copy: Literal["linked", "whole"] = "linked" if safe else "whole"
        return RunScript(
            origin, words, in_turns, environment, of.inject, of.most_steps, scratch, copy
        )

    @property
    def key(self) -> RunKey:
        """What it measures; used by ``--resume``."""
        variables = (f"{name}={value}" for name, value in self.side.environment.items())
        command = ((*variables, *self.words), str(self.of.directory), self.program_sha256)
        return RunKey(
            step_fingerprint=self.of.fingerprint,
            machine=platform.node(),
            repeat=self.round,
            command=command,
        )


def sides(
    command: Command,
    devices: Sequence[str],
    varied: Mapping[str, Sequence[str]],
    variables: Mapping[str, Sequence[str]] | None = None,
) -> list[CommandSide]:
    """Return every combination of the values.

    Args:
        devices: values of ``{device}``; empty if the command has no such placeholder.
        varied: values of the placeholders, by name.
        variables: values of environment variables, by name.

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
    combinations = itertools.product(_combined(every), _combined(variables or {}))
    return [CommandSide(values, environment) for values, environment in combinations]


def _combined(varied: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    return [
        dict(zip(varied, values, strict=True)) for values in itertools.product(*varied.values())
    ]


def _listed(values: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def require_program(program: str, directory: Path) -> None:
    """Raise UsageError unless ``program`` can be started in ``directory``.

    It is the first word of a command.
    """
    if shutil.which(str(directory / program) if "/" in program else program) is None:
        raise UsageError(
            f"the command can't be started: there is no executable {program!r}",
            expected=f"a program on PATH, or its path from {directory}",
            fix="Remove the quotes: a quoted command is a single word." if " " in program else "",
        )


def require_small(folder: Path) -> None:
    """Raise UsageError for a working folder that is too large to be copied for each run."""
    total = 0
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in (*NOT_COPIED, *ENVIRONMENTS)]
        total += sum((Path(place) / name).lstat().st_size for name in files)
        if total > LARGEST_COPY:
            raise UsageError(
                f"{folder} is too large to copy for each run",
                expected="at most 1 GiB",
                found=f"more, in {place}",
                fix="Start trainmark in a folder that has only the script, and pass it the paths "
                "of its data; or, for "
                "explain, begin the command with python, for which large files are linked.",
            )


def name_of(words: Sequence[str]) -> str:
    """The file of a script among the words, else the module of ``python -m``, else the program."""
    words = _launched(words)
    modules = (
        name for flag, name in itertools.pairwise(words) if flag == "-m" and is_python(words)
    )
    return Path(_script(words) or next(modules, None) or words[0]).name or words[0]


def program_of(words: Sequence[str]) -> str:
    """The file name of the program, without launchers such as ``nice``."""
    return Path(_launched(words)[0]).name


def is_python(words: Sequence[str]) -> bool:
    """Whether the program is Python, or starts it."""
    return program_of(words).startswith(("python", "pypy", "torchrun", "accelerate", "deepspeed"))


def is_protected(words: Sequence[str]) -> bool:
    """Whether the command is a Python that loads the observer.

    The observer keeps experiments from writing through links.
    """
    options = itertools.takewhile(_is_before_program, words[1:])
    is_isolated = any(re.match("-[A-Za-z]*[EIS]", word) for word in options)
    is_python = re.fullmatch(r"(python|pypy)[\d.]*", Path(words[0]).name) is not None
    return is_python and not is_isolated


def _is_before_program(word: str) -> bool:
    """Whether a word of a Python command comes before the program that it runs."""
    return word not in ("-c", "-m") and not word.endswith(".py")


def _launched(words: Sequence[str]) -> Sequence[str]:
    """Return the words from the program on that launchers start in the end.

    The program is the first word that is no option or value.
    """
    if Path(words[0]).name not in _LAUNCHERS:
        return words
    for index, word in enumerate(words[1:], start=1):
        if not (word.startswith("-") or "=" in word) and shutil.which(word):
            return _launched(words[index:])
    return words


def _script(words: Sequence[str]) -> str | None:
    return next(
        (word for word in words[1:] if re.search(r"\.(py|jl|R|sh|js|m|ipynb)$", word)), None
    )
