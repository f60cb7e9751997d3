"""What to do about a user's script, in sentences: the answer first, then what else is known."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from trainmark import units
from trainmark.analysis.causes import Found
from trainmark.analysis.changes import SAMPLED, Curve, Finding
from trainmark.analysis.experiments import (
    NO_GAIN,
    NOT_ENOUGH_TIME,
    experiment,
    words,
)
from trainmark.record.growth import Growth
from trainmark.report.changes_table import times
from trainmark.report.contradictions import Measured, Statement, agreeing, is_idle, takes_long
from trainmark.report.growth import growth_sentence, memory_sentences

_MOST_LINES = 3
"""Maximum number of slow lines that the last sentence names."""
_LEAST_SHARE = 0.1
"""Share of the time from which on a line counts as slow."""
_PORT_IN_USE = ("EADDRINUSE", "Address already in use", "address already in use")
"""In the error of a script that listens on a port on which another one listens."""
_LONGEST_TEXT = 60
"""Most characters of a line's source in a sentence."""
_BUSY = ", while other programs used the machine"
_VAGUE = 4.0
"""Ratio between the ends of an interval above which the value between them says little."""
_MORE_MEMORY = 1.05
"""Multiple of the unchanged script's memory from which on the answer says it."""
_LEARNING: dict[Curve, str] = {
    "same": " and learns the same",
    "better": ", and the loss falls faster",
    "worse": ", but harms learning: the loss is higher",
    "unclear": "; the effect on learning is unclear",
    "unseen": "; learning is not judged",
}
_LARGER_BATCH: dict[Curve, str] = {
    "same": " per example, but learns no more in the same time",
    "better": " per example, and learns more in the same time",
    "worse": " per example, but learns less in the same time",
    "unclear": " per example; whether it learns more in the same time is unclear",
    "unseen": " per example; learning is not judged",
}


def answers(
    findings: Sequence[Finding],
    stack: Sequence[Finding],
    lines: Mapping[str, float],
    left_out: Mapping[str, str] = MappingProxyType({}),
    *,
    causes: Sequence[Found] = (),
    inside: Mapping[str, float] = MappingProxyType({}),
    texts: Mapping[str, str] = MappingProxyType({}),
    grows: Growth | None = None,
    grows_at: str | None = None,
    memory_grows: Mapping[str, Growth] = MappingProxyType({}),
    planned_steps: int | None = None,
    learning_unseen: str | None = None,
    interrupted: bool = False,
    is_queued: bool = False,
    is_busy: bool = False,
    seen: Sequence[str] = (),
    samples: int | None = None,
    workers: int | None = None,
) -> list[str]:
    """Return what to do first, then the other sentences about the findings.

    Growing steps come before everything else, since all other figures then depend on the step;
    then a growing memory, which may end the training.

    Args:
        findings: what each change gives.
        stack: the first of several changes that are worth it together, then with the second one,
            and so on; empty if there are none.
        lines: share of the time of each line.
        left_out: why changes were not tried, or failed.
        causes: known causes of slow steps of which there is evidence.
        inside: share of the time of each function of a library that the slowest line calls.
        texts: source of lines.
        grows: by how much each step takes longer than the one before.
        grows_at: the line that most of this is due to.
        memory_grows: by how much the memory of the process and of the device grow with each step.
        planned_steps: number of steps of the whole training, if it is known.
        learning_unseen: why the losses do not show whether the script learns.
        interrupted: whether Ctrl-C has ended the measurements.
        is_queued: whether lines only queue their work, so that others wait for it.
        is_busy: whether other programs used the machine, which every promise then says.
        seen: further sentences, about what was observed.
        samples: number of samples that shares of the time come from.
        workers: number of worker processes that the script's loader has; None if unknown.
    """
    busy = _BUSY if is_busy else ""
    shares = {cause.name: cause.share for cause in causes if cause.share is not None}
    sorted_ = _Sorted(findings, stack, shares)
    measured = Measured(findings, shares, samples, workers, busy)
    said = [_stacked(stack, findings, busy)] if stack else []
    said += [_advice(each, busy, texts) for each in sorted_.helpful]
    said += [_unmeasured(each, findings) for each in causes if _costs_unknown(each, findings)]
    said = agreeing(said, measured)
    if not said:
        said += _without_a_winner(sorted_, left_out, lines, interrupted=interrupted)
    others = agreeing(sorted_.others(busy), measured)
    sentences = [*(each.text for each in said), *seen, *(each.text for each in others)]
    if learning_unseen is not None and any(each.learning == "unseen" for each in findings):
        sentences.append(f"Learning is not judged: {learning_unseen}.")
    sentences += _slowest(lines, texts, is_queued=is_queued)
    if sentences and any(share >= _LEAST_SHARE for share in lines.values()):
        sentences += _inside(next(iter(lines)), inside)
    growths = [] if grows is None else [growth_sentence(grows, grows_at, last=planned_steps)]
    return [*growths, *memory_sentences(memory_grows, planned_steps), *sentences]


class _Sorted:
    """Findings by what the answer says about them.

    Args:
        findings: all of them, but for stacks.
        stack: the changes that are worth it together, which are named there.
        shares: share of the time of each known cause, by its name.
    """

    def __init__(
        self, findings: Sequence[Finding], stack: Sequence[Finding], shares: Mapping[str, float]
    ) -> None:
        together = stack[-1].change.split("+") if stack else []
        alone = [each for each in findings if each.change not in together]
        self.findings = findings
        helpful = [each for each in alone if each.helps and (each.fresh or each.cause)]
        # What grows costs more and more, so that the gain so far says little.
        self.helpful = sorted(helpful, key=lambda each: not _grows(each))
        self.once = [
            each for each in alone if each.wins and not each.fresh and each not in self.helpful
        ]
        self.unclear = [
            each
            for each in findings
            if not (each.wins or is_idle(each) or takes_long(each, shares))
        ]

    def others(self, busy: str) -> list[Statement]:
        """Return statements about those that are no advice.

        Args:
            busy: the words by which promises say that other programs used the machine.
        """
        said = [
            Statement(f"{each.change} is {_times(each)} faster{_learns(each)}{busy}.", (each,))
            for each in self.findings
            if each.wins and each.fresh and not each.helps
        ]
        if self.once:
            named = _names_with_times(self.once)
            text = f"Measured only once, so not confirmed: {named}{busy}."
            said.append(Statement(text, tuple(self.once)))
        if self.unclear:
            named = _names_with_times(self.unclear)
            text = f"Too noisy to tell (stop other programs, or increase --seconds): {named}."
            said.append(Statement(text, unclear=tuple(self.unclear)))
        idle = [each for each in self.findings if is_idle(each)]
        no_use = _names(each for each in idle if each.kind != "diagnosis")
        if no_use:
            said.append(Statement(f"Not worth it: {no_use}."))
        cheap = _names(each for each in idle if each.kind == "diagnosis")
        if cheap:
            said.append(Statement(f"Not the bottleneck: {cheap}."))
        return said


def _grows(found: Finding) -> bool:
    """Whether it is about something that gets larger with every step."""
    return found.cause is not None and found.cause.variable is not None


def _without_a_winner(
    found: _Sorted,
    left_out: Mapping[str, str],
    lines: Mapping[str, float],
    *,
    interrupted: bool,
) -> list[Statement]:
    """Return the answer if there is nothing to advise: where the time is, if that is known."""
    late = sum(why.startswith(NOT_ENOUGH_TIME) for why in left_out.values())
    tried = any(why.startswith(NO_GAIN) for why in left_out.values())
    if found.findings or tried:
        untried = f", but {late} more had no time (increase --seconds)" if late else ""
        clearly = "certainly" if found.once else "clearly"
        first = f"None of the changes tried makes this script {clearly} faster{untried}."
    elif interrupted:
        first = "Interrupted before a change was measured."
    else:
        first = _nothing_measured(left_out)
    line = max(lines, key=lines.__getitem__, default=None)
    if line is None or lines[line] < _LEAST_SHARE:
        return [Statement(first)]
    share = units.percent(lines[line], 0)
    return [Statement(f"{first} Its slowest line is {line}, with {share} of the time.")]


def _slowest(lines: Mapping[str, float], texts: Mapping[str, str], *, is_queued: bool) -> list[str]:
    """Return a sentence about the slowest lines, with their text."""
    slow = [place for place, share in lines.items() if share >= _LEAST_SHARE][:_MOST_LINES]
    if not slow:
        return []
    named = [
        f"{place} {units.percent(lines[place], 0)}"
        + (f" ({shortened(texts[place])})" if texts.get(place) else "")
        for place in slow
    ]
    waiting = " (including waits for earlier lines)" if is_queued else ""
    return [f"Your slowest lines{waiting}: {', '.join(named)}."]


def shortened(text: str) -> str:
    """Return the source of a line, short enough for a sentence."""
    short = " ".join(text.split())
    return short if len(short) <= _LONGEST_TEXT else short[: _LONGEST_TEXT - 1] + "…"


def _inside(line: str, inside: Mapping[str, float]) -> list[str]:
    """Return a sentence about what a line calls, if that takes long."""
    named = [
        f"{units.percent(share, 0)} in {function}"
        for function, share in inside.items()
        if share >= _LEAST_SHARE
    ]
    return [f"{line} calls a library: {'; '.join(named[:_MOST_LINES])}."] if named else []


def _nothing_measured(left_out: Mapping[str, str]) -> str:
    reasons = set(left_out.values())
    late = {reason for reason in reasons if reason.startswith(NOT_ENOUGH_TIME)}
    if late:
        return f"No change could be measured: {max(late)}."
    failed = [why for why in left_out.values() if "--only" not in why]
    if any(sign in why for why in failed for sign in _PORT_IN_USE):
        return (
            "No change could be measured: the script listens on a fixed port, so only one of it "
            "can run at a time."
        )
    if failed:
        ((why, _),) = Counter(failed).most_common(1)
        return f"No change could be measured: {why}."
    return "No change could be measured." if left_out else "No changes were tried."


def _advice(found: Finding, busy: str, texts: Mapping[str, str]) -> Statement:
    """Return what to do, where, and by how much it helps."""
    text = _advice_text(found, busy)
    source = texts.get(found.place or "")
    if found.change == "line" and source:
        text = text.replace("this code", f"this code, {shortened(source)}", 1)
    return Statement(text, (found,) if found.promises else ())


def _advice_text(found: Finding, busy: str) -> str:
    where = f" ({found.place})" if found.place else ""
    cause = found.cause
    if cause is None:
        return f"{_to_do(found)}{where}. {_promise(found, busy)}"
    if found.proof == SAMPLED:
        share = "" if cause.share is None else f": {units.percent(cause.share, 0)} of the time"
        promise = f" {_promise(found, busy)}" if found.promises else ""
        return f"{cause.seen}{where}{share}. {cause.cure}.{promise}"
    return f"{cause.seen}{where}. {_to_do(found)}. {_promise(found, busy)}"


def _to_do(found: Finding) -> str:
    """Return what to do, without a full stop."""
    if found.kind == "diagnosis" and found.cause is not None:
        return found.cause.cure
    return words(experiment(found.change).advice, found.change).removesuffix(".")


def _promise(found: Finding, busy: str) -> str:
    """Return by how much a change helps, and what it costs."""
    if found.proof == SAMPLED and _grows(found):
        return (
            f"Without it, the steps that were seen would be {_about(found)} faster, and later ones "
            f"more so{busy}."
        )
    if found.proof == SAMPLED:
        return f"Without it, the script would be {_about(found)} faster{busy}."
    once = "" if found.fresh else " (measured only once)"
    if found.kind == "diagnosis":
        # Not "at most": a cure may also remove work around what the experiment left out. Without
        # evaluation, one script was 1.82 times as fast; with fewer evaluations, 2.07 times.
        return f"Without this, the script was {_times(found)} faster{once}{busy}."
    memory = ""
    if found.memory is not None and found.memory > _MORE_MEMORY:
        memory = f" It then takes {found.memory:.2f} times the memory."
    return f"This is {_times(found)} faster{_learns(found)}{once}{busy}.{memory}"


def _times(found: Finding) -> str:
    """Return how many times as fast the script is with a change.

    The lower end alone is worth saying if the interval is wide.
    """
    if _is_vague(found):
        return f"at least {found.speedup.low:.2f}×"
    return times(found)


def _is_vague(found: Finding) -> bool:
    """Whether the interval is so wide that only its lower end is worth saying."""
    low = found.speedup.low
    high = found.speedup.high
    return low is not None and high is not None and low > 1 and high > _VAGUE * low


def _about(found: Finding) -> str:
    """Return the same for what was estimated from samples."""
    return _times(found) if _is_vague(found) else f"about {_times(found)}"


def _stacked(stack: Sequence[Finding], findings: Sequence[Finding], busy: str) -> Statement:
    """Return several changes, what they give together, and what each adds to those before it."""
    whole = stack[-1]
    names = whole.change.split("+")
    alone = {each.change: each for each in findings}
    advice = [_advised(name, alone.get(name)) for name in names]
    ratios = [each.speedup.value for each in stack]
    added = [later / earlier for earlier, later in itertools.pairwise(ratios)]
    adds = [f"{name} adds {gain:.2f}×" for name, gain in zip(names[1:], added, strict=True)]
    without = [
        words(experiment(name).does, name) for name in names if experiment(name).kind == "diagnosis"
    ]
    faster = f"is {_times(whole)} faster{_learns(whole)}"
    if without:
        faster = f"was {_times(whole)} faster (tested with: {'; '.join(without)})"
    text = f"Make {len(names)} changes: {'; '.join(advice)}. Together, the script {faster}{busy}"
    if not any(map(_is_vague, stack)):  # else the values between the ends say little
        text += f": {names[0]} alone gives {ratios[0]:.2f}×, {', '.join(adds)}"
    unjudged = (
        " What was tested is no valid training, so learning is not judged." if without else ""
    )
    return Statement(f"{text}.{unjudged}", (whole,))


def _advised(change: str, found: Finding | None) -> str:
    """Return what to do, and where; a change that was only measured with others has no line."""
    if found is None:
        return words(experiment(change).advice, change).removesuffix(".")
    return _to_do(found) + (f" ({found.place})" if found.place else "")


def _costs_unknown(cause: Found, findings: Sequence[Finding]) -> bool:
    """Whether nothing shows what a cause costs."""
    about = [each for each in findings if each.cause is not None and each.cause.name == cause.name]
    if any(each.wins for each in about):
        return False
    return not about or not all(map(is_idle, about))


def _unmeasured(cause: Found, findings: Sequence[Finding]) -> Statement:
    """Return what is known of a cause that nothing shows the cost of."""
    where = f" ({cause.place})" if cause.place else ""
    tried = any(each.cause is not None and each.cause.name == cause.name for each in findings)
    why = "is too noisy to tell" if tried else "was not measured"
    if cause.variable is not None:  # what it costs grows, too
        return Statement(f"{cause.seen}{where}. {cause.cure}.")
    if cause.share is not None:
        share = units.percent(cause.share, 0)
        return Statement(f"{cause.seen}{where}: {share} of the time. {cause.cure}.")
    return Statement(f"{cause.seen}{where}. {cause.cure}. What it costs {why}.")


def _names(found: Iterable[Finding]) -> str:
    return ", ".join(map(_name, found))


def _names_with_times(found: Iterable[Finding]) -> str:
    return ", ".join(f"{_name(each)} {times(each)}" for each in found)


def _name(found: Finding) -> str:
    """Return the name of a change; that of larger batches would be taken for their size."""
    name, _, value = found.change.partition("=")
    return f"{found.change} ({value}× larger batches)" if name == "batch" else found.change


def _learns(found: Finding) -> str:
    return (_LARGER_BATCH if found.kind == "learning" else _LEARNING)[found.learning]
