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
from functools import cached_property
from pathlib import Path

from trainmark import landlock, regular
from trainmark.errors import UnknownName, UsageError
from trainmark.execute.parent.plan import Settings
from trainmark.execute.parent.probe import THIS
from trainmark.execute.protocol.worker_commands import ENVIRONMENTS, RunScript
from trainmark.inject.changes import VARIABLE as CHANGES
from trainmark.inject.overlay import NOT_COPIED
from trainmark.masking import Secrets, mask_template
from trainmark.record.facts import FACTS, RunKey
from trainmark.record.named_metric import WantedMetric
from trainmark.units import bytes_

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LARGEST_PROGRAM = 100 << 20
"""Most bytes of a script or program whose checksum is recorded."""
GIB = 1 << 30
LARGEST_COPY = GIB
"""Most bytes of a working folder that is copied, unless the user allows more."""
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
        files: text of files that its copy has instead of the original ones, by their path in it.
    """

    values: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

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
        name: name of the training; secrets in it are masked.
        template: words of the command, with placeholders.
        directory: its working folder.
        inject: observe the steps of its Python processes.
        most_steps: the step after which an observed training ends; None trains to the end.
        scratch: run in a copy of the working folder.
        outputs: folder that keeps what the first complete run has written in its copy; None keeps
            nothing.
        most_copied: most bytes of the working folder, where nothing of it can be linked.
        metric: a figure that it prints or logs, which shows what it learns.

    Raises:
        UsageError: that folder is the root of the file system, which can't be copied.
    """

    name: str
    template: tuple[str, ...]
    directory: Path
    inject: bool = True
    most_steps: int | None = None
    scratch: bool = False
    outputs: Path | None = None
    most_copied: int = LARGEST_COPY
    metric: WantedMetric | None = None

    def __post_init__(self) -> None:
        if self.scratch and self.directory == Path(self.directory.root):
            raise UsageError(
                f"the working folder {self.directory} can't be copied for each run",
                expected="the folder of your script",
                fix="cd to that folder, and start trainmark there, or use measure --in-place.",
            )
        object.__setattr__(self, "name", self.secrets.mask(self.name))

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

        These have the same words, with any values of the placeholders and of secrets, and as many
        steps.
        """
        steps = [] if self.most_steps is None else [self.most_steps]
        identity = json.dumps([self.name, *self.shown_template, *steps])
        return hashlib.sha256(identity.encode()).hexdigest()[:16]

    @cached_property
    def secrets(self) -> Secrets:
        """The secrets among its words."""
        return Secrets.of(self.template, {})

    @cached_property
    def shown_template(self) -> list[str]:
        """Its words, with secrets masked: what records and messages have of them."""
        return mask_template(self.template)

    @property
    def shown_directory(self) -> str:
        """Its working folder, with secrets masked."""
        return self.secrets.mask(str(self.directory))

    def words(self, values: Mapping[str, str]) -> list[str]:
        """The command with its placeholders filled, without words that become empty.

        ``{{`` and ``}}`` are braces.
        """
        return _filled(self.template, values)


def _filled(template: Sequence[str], values: Mapping[str, str]) -> list[str]:
    def filled(found: re.Match[str]) -> str:
        return values[found[1]] if found[1] else found[0][0]

    words = [(word, _PLACEHOLDER.sub(filled, word)) for word in template]
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
        steps_a_second: the slices have equal numbers of steps on all sides, of which this many
            stand for a second. None makes them equally long in time.
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
    steps_a_second: float | None = None

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
        return self.of.words(self._values)

    @property
    def shown_words(self) -> list[str]:
        """The same with secrets masked; the values that are compared stay."""
        return _filled(self.of.shown_template, self._values)

    @property
    def _values(self) -> dict[str, str]:
        return {**self.side.values, SEED: str(self.settings.seed + self.round)}

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
        return RunScript(
            origin=origin,
            argv=tuple(self.words),
            in_turns=in_turns,
            environment=dict(self.side.environment),
            inject=of.inject,
            most_steps=of.most_steps,
            metric=of.metric.name if of.metric else None,
            scratch=str(of.directory) if of.scratch else None,
            confined=of.scratch and landlock.is_sufficient(),
            outputs=str(of.outputs) if of.outputs else None,
            files=dict(self.side.files),
        )

    @property
    def key(self) -> RunKey:
        """What it measures; used by ``--resume``, which compares it with a record's."""
        variables = (f"{name}={value}" for name, value in self.side.environment.items())
        words = (*variables, *self.shown_words)
        command = (words, self.of.shown_directory, self.program_sha256)
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
                found=" ".join(command.shown_template),
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


def require_small(command: Command) -> None:
    """Raise UsageError if the working folder of ``command`` is too large to be copied for each run.

    Where the kernel confines a command (:mod:`trainmark.landlock`), large files are linked.
    """
    if landlock.is_sufficient():
        return
    folder = command.directory
    left_out = (*NOT_COPIED, *ENVIRONMENTS)
    sizes = {path.name: _size(path) for path in folder.iterdir() if path.name not in left_out}
    total = sum(sizes.values())
    if total > command.most_copied:
        largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[:3]
        named = ", ".join(f"{name} {bytes_(sizes[name])}" for name in largest)
        raise UsageError(
            f"{folder} is too large to copy for each run",
            expected=f"at most {bytes_(command.most_copied)} (--copy-limit)",
            found=f"{bytes_(total)}: {named}",
            fix="Start trainmark in a folder that has only the script, and pass it the paths of "
            "its data. On Linux 6.2 or newer, large files are linked instead.",
        )


def _size(path: Path) -> int:
    """Return the bytes of the files at or below ``path``, without following links."""
    if not path.is_dir() or path.is_symlink():
        return path.lstat().st_size
    left_out = (*NOT_COPIED, *ENVIRONMENTS)
    total = 0
    for place, folders, files in os.walk(path):
        folders[:] = [name for name in folders if name not in left_out]
        total += sum((Path(place) / name).lstat().st_size for name in files)
    return total


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
    """Return the script of a command; one that exists goes before what it may write."""
    found = [word for word in words[1:] if re.search(r"\.(py|jl|R|sh|js|m|ipynb)$", word)]
    return next((word for word in found if Path(word).is_file()), next(iter(found), None))
