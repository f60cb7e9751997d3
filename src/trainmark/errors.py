"""All errors that trainmark raises on purpose, in one tree.

TrainmarkError
├── UsageError              the request can't be carried out as typed
│   ├── UnknownName         no such workload, backend, device, dataset, ...
│   ├── NotInstalled        the backend's framework is missing
│   ├── AbsentDevice        the backend does not see the device
│   ├── Unsupported         the backend can't do what the workload or the options need
│   ├── SpecError           a workload file is wrong
│   └── OutputError         the output folder can't be used
│       └── UnwritableFolder    it is not writable
├── DataError               a dataset can't be used
│   ├── DamagedData         a file has the wrong size, header or checksum
│   └── DataUnavailable     no folder, cache or mirror has it
├── RecordError             a record can't be used
│   ├── ForeignRecord       not a trainmark record
│   ├── NewerRecord         written by a newer trainmark
│   └── RecordNotKept       it could not be written to its folder
├── TrainingDiverged        training reached a loss that is not finite
├── ExplanationFailed       a run could not be explained
├── NoiseFailed             a side could not be compared with itself
├── ParityFailed            the reference could not compute the steps to compare
├── PredictionFailed        a trained network could not predict
├── RendezvousFailed        the ranks of a training could not connect
├── RanksDiffer             the ranks are not set up alike
├── PrintingFailed          stdout can't be written
└── ProtocolError           the measured process broke the protocol

Each states what was expected, what was found, and what to do. Only ``trainmark.cli`` turns them
into exit codes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

_LONGEST = 100
"""Maximum length of a name that is compared and printed."""


class TrainmarkError(Exception):
    """Base of all errors that trainmark raises on purpose.

    Args:
        problem: what is wrong, one clause without a final full stop.
        expected: what would have been right.
        found: what was found instead.
        fix: what to do, as a sentence or a command.
    """

    def __init__(self, problem: str, *, expected: str = "", found: str = "", fix: str = "") -> None:
        self.problem = problem
        self.expected = expected
        self.found = found
        self.fix = fix
        super().__init__(problem)

    def __str__(self) -> str:
        # It masks secrets. The import is late, since every measured process imports this module.
        from trainmark.masking import mask

        facts = [
            f"{word} {fact}"
            for word, fact in (("expected", self.expected), ("found", self.found))
            if fact
        ]
        text = f"{self.problem}: {', '.join(facts)}" if facts else self.problem
        return mask(f"{text}. {self.fix}" if self.fix else text)


class UsageError(TrainmarkError):
    """The request can't be carried out as typed."""


class UnknownName(UsageError):
    """An unknown name; suggests the nearest known names.

    Args:
        kind: what the name is of, such as ``workload``.
        name: the unknown name.
        known: all known names.
        otherwise: what to do if no known name is near.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], otherwise: str = "") -> None:
        known = sorted(known)
        near = nearest(name, known)
        fix = f"Did you mean {' or '.join(near)}?" if near else otherwise
        expected = f"one of {', '.join(known)}" if known else ""
        super().__init__(f"unknown {kind} {name[:_LONGEST]!r}", expected=expected, fix=fix)
        self.near = tuple(near)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Find known names that may be meant by ``name``.

    Args:
        name: an unknown name.
        known: all known names.

    Returns:
        Up to three of them, nearest first; empty if none is near.
    """
    name = name[:_LONGEST]  # matching takes quadratic time
    likeness = {each: _likeness(name, each) for each in known}
    best = max(likeness.values(), default=0.0)
    near = sorted(
        (each for each in likeness if likeness[each] >= max(0.5, best - 0.1)),
        key=lambda k: -likeness[k],
    )
    return near[:3]


def _likeness(name: str, known: str) -> float:
    """Similarity from 0 to 1; nearly 1 for a common abbreviation."""
    within, _, short = name.rpartition(".")
    parent, _, whole = known.rpartition(".")
    if within in ("", parent):  # ``lr`` and ``optimizer.lr`` of ``optimizer.learning_rate``
        initials = "".join(word[:1] for word in re.split(r"[-_:]", whole))
        if len(short) > 1 and (short == initials or whole.startswith(short)):
            return 0.99
        if len(short) > 2 and short in whole:
            return 0.95
    return difflib.SequenceMatcher(None, name, known).ratio()


class NotInstalled(UsageError):
    """The framework of a backend is not installed in its interpreter."""


class AbsentDevice(UsageError):
    """A device that the backend does not see."""


class Unsupported(UsageError):
    """Something that a backend does not support."""


class SpecError(UsageError):
    """A workload that is inconsistent or written wrongly."""


class OutputError(UsageError):
    """The output folder can't be used."""


class UnwritableFolder(OutputError):
    """The folder given with ``--out`` is not writable.

    Args:
        folder: the folder.
        error: the operating system's error.
    """

    def __init__(self, folder: Path, error: OSError) -> None:
        in_container = ' In a container: run it with --user "$(id -u):$(id -g)".'
        super().__init__(
            f"can't write to {folder}",
            expected="a writable folder",
            found=error.strerror or str(error),
            fix="Choose another folder with --out."
            + (in_container if isinstance(error, PermissionError) else ""),
        )


class DataError(TrainmarkError):
    """A dataset can't be used."""


class DamagedData(DataError):
    """A file has the wrong size, header or checksum."""


class DataUnavailable(DataError):
    """No folder, cache or mirror has the dataset."""


class RecordError(TrainmarkError):
    """A record can't be used."""


class ForeignRecord(RecordError):
    """A file that is not a trainmark record."""


class NewerRecord(RecordError):
    """A record that was written by a newer trainmark."""


class RecordNotKept(RecordError):
    """A record could not be written into its folder, for example because the disk is full."""


class TrainingDiverged(TrainmarkError):
    """Training reached a loss that is not finite.

    Args:
        step: number of the first step, from 0, whose loss is not finite.
        loss: that loss.
        before: the last finite loss; None if the first step already failed.
    """

    def __init__(self, step: int, loss: float, before: float | None) -> None:
        self.step = step
        self.loss = loss
        self.before = before
        kind = "NaN" if loss != loss else "infinite"
        super().__init__(f"loss is {kind} at step {step}")


class ExplanationFailed(TrainmarkError):
    """The explanation could not be measured."""


class NoiseFailed(TrainmarkError):
    """A side could not be compared with itself."""


class ParityFailed(TrainmarkError):
    """The reference could not compute the steps to compare."""


class PredictionFailed(TrainmarkError):
    """A trained network could not predict."""


class RendezvousFailed(TrainmarkError):
    """The processes of one training could not connect to each other."""


class RanksDiffer(TrainmarkError):
    """The processes of one training are not set up alike."""


class PrintingFailed(TrainmarkError):
    """The output can't be written to stdout, for example because the disk is full."""


class ProtocolError(TrainmarkError):
    """The measured process sent something that is not in the protocol."""


def assert_never(value: NoReturn) -> NoReturn:
    """End a ``match`` over a closed union.

    mypy rejects a missing case, and at run time the error names it.

    ``typing.assert_never`` needs Python 3.11; the measured process may run 3.10.

    Args:
        value: the value that is matched.

    Raises:
        Unsupported: ``value`` is of a kind that this ``match`` does not handle.
    """
    kind = getattr(value, "kind", type(value).__name__)
    raise Unsupported(
        f"{kind!r} is not implemented here",
        fix="Remove it from the backend's kinds, or implement it.",
    )
