"""The trials of a sweep, best first."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark import units
from trainmark.analysis.sweep import Sweep, TrialResult
from trainmark.record.caveats import Caveat
from trainmark.report.caveat_notes import caveat_notes
from trainmark.report.table import Cell, Column, Table, TableRow, Tone

_TONES: dict[str, Tone] = {"ok": "plain", "diverged": "bad", "failed": "bad"}


def sweep_table(sweep: Sweep) -> Table:
    """One row per trial; the keys that were varied are columns."""
    unfinished = sum(trial.outcome != "ok" for trial in sweep.trials)
    failed = f", {unfinished} not finished" if unfinished else ""
    return Table(
        title=f"{sweep.workload}: {units.many(len(sweep.trials), 'trial')}, best first",
        conditions=(f"{sweep.side}, {sweep.dataset}{failed}",),
        columns=(
            Column("trial", "right"),
            *(Column(key, "right") for key in sweep.grid),
            Column("test\nacc.", "right"),
            Column("test\nloss", "right"),
            Column("training", "right"),
            Column("outcome"),
        ),
        rows=tuple(_row(sweep, trial) for trial in sweep.trials),
        notes=tuple(_notes(sweep)),
    )


def sentence(sweep: Sweep) -> str:
    """The answer, in a sentence or two."""
    trials = units.many(len(sweep.trials), "trial")
    if sweep.best is None:
        return f"None of {trials} of {sweep.workload} finished."
    best = sweep.trials[0]
    values = ", ".join(f"{key} {value}" for key, value in best.values.items())
    learnt = "" if best.test_accuracy is None else f", with {units.percent(best.test_accuracy)} test accuracy"
    if Caveat.NOT_LEARNING in best.caveats:
        learnt += ", but it did not learn"
    lost = sum(trial.outcome != "ok" for trial in sweep.trials)
    failed = f" {units.many(lost, 'trial')} did not finish." if lost else ""
    return f"The best of {trials} of {sweep.workload} with {sweep.side} is {values}{learnt}.{failed}"


def _row(sweep: Sweep, trial: TrialResult) -> TableRow:
    best = trial.trial == sweep.best
    return TableRow(
        (
            Cell(str(trial.trial), tone="strong" if best else "plain", value=trial.trial),
            *(_value(trial, key, best=best) for key in sweep.grid),
            Cell(units.percent(trial.test_accuracy), tone="good" if best else "plain", value=trial.test_accuracy),
            Cell(units.loss(trial.test_loss), value=trial.test_loss),
            Cell(units.seconds(trial.training_seconds), value=trial.training_seconds),
            _outcome(trial),
        ),
        data={
            "trial": trial.trial,
            **trial.values,
            "test_accuracy": trial.test_accuracy,
            "test_loss": trial.test_loss,
            "training_seconds": trial.training_seconds,
            "outcome": trial.outcome,
            "reason": trial.reason,
            "record": trial.record,
        },
    )


def _outcome(trial: TrialResult) -> Cell:
    if trial.stopped_early:
        return Cell("stopped early", tone="doubtful")
    return Cell(trial.outcome, trial.reason or "", _TONES.get(trial.outcome, "doubtful"))


def _value(trial: TrialResult, key: str, *, best: bool) -> Cell:
    value = trial.values.get(key)
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    text = units.MISSING if value is None else str(value)
    return Cell(text, tone="strong" if best else "plain", value=number)


def _notes(sweep: Sweep) -> Iterator[str]:
    if sweep.side_by_side:
        yield (
            "Trials trained at the same time and slowed each other down: don't compare their timings "
            "(trainmark run measures one at a time)."
        )
    told = {str(trial.trial): trial.caveats for trial in sweep.trials}
    yield from caveat_notes(told, without=Caveat.SIDE_BY_SIDE)
    if len(sweep.machines) > 1:
        yield f"Trained on {', '.join(sweep.machines)}."
    if "seed" not in sweep.grid:
        yield "One run per trial: another seed alone changes the accuracy (--grid seed=1,2,3 shows by how much)."
