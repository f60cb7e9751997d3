"""A table of the trials of a sweep, best first."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark import units
from trainmark.analysis.sweep import Sweep, TrialResult, Value
from trainmark.record.caveats import Caveat
from trainmark.report.caveat_notes import caveat_notes
from trainmark.report.runs_table import outcome_cell
from trainmark.report.table import Cell, Field, Scalar, Table, Tone, number_of, table_of

_DATA = ("test_accuracy", "test_loss", "training_seconds", "outcome", "reason", "record")


def sweep_table(sweep: Sweep) -> Table:
    """Return a table with a row per trial and a column per varied key."""
    unfinished = sum(trial.outcome != "ok" for trial in sweep.trials)
    failed = f", {unfinished} not finished" if unfinished else ""

    def tone(trial: TrialResult, of_the_best: Tone) -> Tone:
        return of_the_best if trial.trial == sweep.best else "plain"

    def varied(key: str) -> Field[TrialResult]:
        def value(trial: TrialResult) -> Cell:
            return _value(trial.values.get(key), tone(trial, "strong"))

        return Field(key, value, "right")

    def number(trial: TrialResult) -> Cell:
        return Cell(str(trial.trial), "", tone(trial, "strong"), trial.trial)

    def accuracy(trial: TrialResult) -> Cell:
        words = units.percent(trial.test_accuracy)
        return Cell(words, "", tone(trial, "good"), trial.test_accuracy)

    return table_of(
        sweep.trials,
        (
            Field("trial", number, "right"),
            *map(varied, sweep.grid),
            *(() if sweep.is_text else (Field("test\nacc.", accuracy, "right"),)),
            Field("test\nloss", number_of("test_loss", units.loss), "right"),
            Field("training", number_of("training_seconds", units.seconds), "right"),
            Field("outcome", _outcome),
        ),
        title=f"{sweep.workload}: {units.many(len(sweep.trials), 'trial')}, best first",
        conditions=(f"{sweep.side}, {sweep.dataset}{failed}",),
        notes=tuple(_notes(sweep)),
        answer=Cell(sentence(sweep), tone="plain" if sweep.best is not None else "bad"),
        data=_data,
    )


def _data(trial: TrialResult) -> dict[str, Scalar]:
    figures = {name: getattr(trial, name) for name in _DATA}
    return {"trial": trial.trial, **trial.values, **figures}


def sentence(sweep: Sweep) -> str:
    """Return the answer, in a sentence or two."""
    trials = units.many(len(sweep.trials), "trial")
    if sweep.best is None:
        return f"None of {trials} of {sweep.workload} finished."
    best = sweep.trials[0]
    values = ", ".join(f"{key} {value}" for key, value in best.values.items())
    learnt = "" if best.test_loss is None else f", with a test loss of {units.loss(best.test_loss)}"
    if best.test_accuracy is not None:
        learnt = f", with {units.percent(best.test_accuracy)} test accuracy"
    if Caveat.NOT_LEARNING in best.caveats:
        learnt += ", but it did not learn"
    lost = sum(trial.outcome != "ok" for trial in sweep.trials)
    failed = f" {units.many(lost, 'trial')} did not finish." if lost else ""
    return (
        f"The best of {trials} of {sweep.workload} with {sweep.side} is {values}{learnt}.{failed}"
    )


def _outcome(trial: TrialResult) -> Cell:
    if Caveat.STOPPED_EARLY in trial.caveats:
        return Cell("stopped early", tone="doubtful")
    return outcome_cell(trial.outcome, trial.reason)


def _value(value: Value | None, tone: Tone) -> Cell:
    number = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(value)
    return Cell(units.MISSING if value is None else str(value), "", tone, number)


def _notes(sweep: Sweep) -> Iterator[str]:
    if sweep.side_by_side:
        yield (
            "Trials trained at the same time and slowed each other down: don't compare their "
            "timings (trainmark run measures one at a time)."
        )
    caveats_by_trial = {str(trial.trial): trial.caveats for trial in sweep.trials}
    yield from caveat_notes(caveats_by_trial, without=Caveat.SIDE_BY_SIDE)
    if len(sweep.machines) > 1:
        yield f"Trained on {', '.join(sweep.machines)}."
    if "seed" not in sweep.grid:
        yield (
            "One run per trial: another seed alone changes the result (--grid seed=1,2,3 shows "
            "by how much)."
        )
