"""How well scripts were seen, by comparison with what is known of them."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foreign.scripts import Script, Truth
from foreign.trials import Trial

_PLACE = re.compile(r"(?P<file>[\w./-]+\.py):(?P<first>\d+)(?:-(?P<last>\d+))?")
_NEARLY = 0.01
"""Share by which a mean number of examples may differ: the first step may be left out."""
_NOTHING = "None of the changes tried makes this script clearly faster"


@dataclass(frozen=True)
class Seen:
    """What was seen of a script.

    Args:
        name: of the script.
        wrong: figures that differ from the truth, with both.
        unknown: figures that are null, though the truth is known.
        harmed: what was harmed.
        sentences: number of sentences of `explain`.
        is_useful: whether a slow line and its cure were named, or rightly nothing; None if the
            truth does not say.
        seconds: how long `explain` took.
    """

    name: str
    wrong: tuple[str, ...]
    unknown: tuple[str, ...]
    harmed: tuple[str, ...]
    sentences: int
    is_useful: bool | None
    seconds: float


@dataclass(frozen=True)
class Judged:
    """What readers found in the sentences about a script.

    Args:
        wrong: sentences that are wrong, with the reason.
    """

    wrong: tuple[str, ...]


def seen(script: Script, truth: Truth, trial: Trial) -> Seen:
    """Compare what was observed of a script with the truth."""
    wrong, unknown = differences(truth, trial.observed)
    explanation = trial.explanation
    if explanation is None:
        wrong.append(f"explain gave no answer, exit code {trial.explained.code}")
    sentences: list[str] = [] if explanation is None else explanation["sentences"]
    return Seen(
        name=script.name,
        wrong=tuple(wrong),
        unknown=tuple(unknown),
        harmed=tuple(trial.harmed),
        sentences=len(sentences),
        is_useful=is_useful(truth, sentences),
        seconds=trial.explained.seconds,
    )


def differences(truth: Truth, observed: Mapping[str, Any] | None) -> tuple[list[str], list[str]]:
    """Return figures that differ from the truth, and those that are null though it is known."""
    if observed is None:
        return ["no steps were seen"], []
    wrong: list[str] = []
    unknown: list[str] = []
    if observed["framework"] != truth.framework:
        wrong.append(f"framework {observed['framework']}, not {truth.framework}")
    trainings = len(observed["training_starts"])
    figures = (
        ("steps", observed["steps"], truth.steps),
        ("evaluations", observed["evaluations"], truth.evaluations),
        ("trainings", trainings, (truth.trainings, truth.trainings)),
    )
    for name, found, bounds in figures:
        if found is None:
            unknown.append(name)
        elif not _is_within(found, bounds):
            wrong.append(f"{name} {found:,}, not {_words(bounds)}")
    examples = observed["examples_per_step"]
    if examples is None:
        unknown += ["examples"] if truth.examples is not None else []
    elif truth.examples is None:
        wrong.append(f"examples {examples:g} a step, which has no such number")
    elif not _is_within(examples, truth.examples, _NEARLY):
        wrong.append(f"examples {examples:g} a step, not {_words(truth.examples)}")
    return wrong, unknown


def is_useful(truth: Truth, sentences: Sequence[str]) -> bool | None:
    """Whether the answer names a slow line or a cure, or says that nothing helps.

    None if the truth does not say what is slow.
    """
    if not truth.slow and not truth.cures:
        return None
    if truth.cures == ("nothing",):
        return any(sentence.startswith(_NOTHING) for sentence in sentences)
    return any(_names(truth, sentence) for sentence in sentences)


def _names(truth: Truth, sentence: str) -> bool:
    """Whether a sentence names a slow line and a cure, as far as there are any."""
    named = not truth.slow or any(_overlaps(place, sentence) for place in truth.slow)
    return named and (not truth.cures or any(cure in sentence for cure in truth.cures))


def _overlaps(place: str, text: str) -> bool:
    """Whether a text names lines of a place."""
    file, first, last = _lines(next(_PLACE.finditer(place)))
    for found in _PLACE.finditer(text):
        named, begins, ends = _lines(found)
        if named == file and begins <= last and first <= ends:
            return True
    return False


def _lines(found: re.Match[str]) -> tuple[str, int, int]:
    first = int(found["first"])
    return found["file"], first, int(found["last"] or first)


def score(scripts: Iterable[Seen], judged: Mapping[str, Judged]) -> str:
    """Return the score, as one line.

    Args:
        scripts: what was seen of each.
        judged: what readers found, by the name of the script.
    """
    every = list(scripts)
    right = [each for each in every if not each.wrong]
    abstained = [each for each in right if each.unknown]
    harmed = [each for each in every if each.harmed]
    useful = [each.is_useful for each in every if each.is_useful is not None]
    read = [each for each in every if each.name in judged]
    wrong = sum(len(judged[each.name].wrong) for each in read)
    sentences = sum(each.sentences for each in read)
    parts = [
        f"seen rightly {len(right)} of {len(every)}"
        + (f" ({len(abstained)} with a figure unknown)" if abstained else ""),
        f"harmed {len(harmed)}",
        f"wrong sentences {wrong} of {sentences}" if read else "sentences not judged",
        f"useful {sum(useful)} of {len(useful)}",
        f"median {statistics.median(each.seconds for each in every):.0f} s" if every else "none",
    ]
    return ", ".join(parts)


def _is_within(found: float, bounds: tuple[float, float], nearly: float = 0.0) -> bool:
    least, most = bounds
    return (1 - nearly) * least <= found <= (1 + nearly) * most


def _words(bounds: tuple[float, float]) -> str:
    least, most = bounds
    return f"{least:,g}" if least == most else f"{least:,g} to {most:,g}"
