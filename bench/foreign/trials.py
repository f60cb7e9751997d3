"""What `measure` and `explain` say of a script, and whether its files stay as they are."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foreign.copies import Ended, copy_of, run, words_of
from foreign.scripts import Script

_TAIL = 2_000
"""Number of characters of the standard error that are kept."""


@dataclass(frozen=True)
class Trial:
    """What was found out about a script.

    Args:
        name: of the script.
        alone: how it ended by itself.
        measured: how `measure` ended.
        explained: how `explain --json` ended.
        observed: what the record of `measure` says about the steps; None without steps.
        harmed: what `explain` changed, or what differs in how the script ended.
    """

    name: str
    alone: Ended
    measured: Ended
    explained: Ended
    observed: dict[str, Any] | None
    harmed: list[str]

    @property
    def explanation(self) -> dict[str, Any] | None:
        """The printed explanation; None if there is none."""
        try:
            found: dict[str, Any] = json.loads(self.explained.printed)
        except ValueError:
            return None
        return found


def tried(script: Script, checkouts: Path, examples: str, python: str, seconds: float) -> Trial:
    """Run a script by itself, under `measure` and under `explain`, each in a separate copy."""
    ours = (sys.executable, "-m", "trainmark")
    words = words_of(script, python)
    with copy_of(script, checkouts) as folder:
        alone = run(words, folder, script, examples, {})
    with copy_of(script, checkouts) as folder:
        results = folder.parent / "foreign-results"
        options = ("--repeats", "1", "--out", str(results), *script.options)
        measured = run((*ours, "measure", *options, "--", *words), folder, script, examples, {})
        observed = _observed(results)
    with copy_of(script, checkouts) as folder:
        before = digests(folder)
        options = ("--seconds", f"{seconds:g}", "--json")
        explained = run((*ours, "explain", *options, "--", *words), folder, script, examples, {})
        changed = changed_files(before, digests(folder))
    harmed = [f"explain: {each}" for each in changed]
    if measured.code != alone.code and not script.options:
        harmed.append(f"measure: exit code {measured.code}, not {alone.code}")
    return Trial(script.name, alone, measured, explained, observed, harmed)


def saved(trial: Trial) -> str:
    """Return a trial as one line."""
    return json.dumps(asdict(trial), ensure_ascii=False)


def loaded(line: str) -> Trial:
    """Return the trial of a line."""
    fields = json.loads(line)
    for name in ("alone", "measured", "explained"):
        fields[name] = Ended(**fields[name])
    return Trial(**fields)


def shortened(trial: Trial) -> Trial:
    """Return a trial with only the end of what commands printed as errors or by themselves."""
    cut = {
        name: Ended(each.code, each.seconds, printed, each.errors[-_TAIL:])
        for name, each, printed in (
            ("alone", trial.alone, trial.alone.printed[-_TAIL:]),
            ("measured", trial.measured, trial.measured.printed),
            ("explained", trial.explained, trial.explained.printed),
        )
    }
    return Trial(trial.name, **cut, observed=trial.observed, harmed=trial.harmed)


def _observed(results: Path) -> dict[str, Any] | None:
    """Return what the only record says about the steps; None if it says nothing."""
    for file in sorted(results.glob("*.json")):
        observed: dict[str, Any] | None = json.loads(file.read_text("utf-8"))["observed"]
        return observed
    return None


def digests(folder: Path) -> dict[str, str]:
    """Return a digest of each file below a folder; of a link, where it leads."""
    found: dict[str, str] = {}
    for each in sorted(folder.rglob("*")):
        name = str(each.relative_to(folder))
        if each.is_symlink():
            found[name] = f"link to {each.readlink()}"
        elif each.is_dir():
            found[name] = "folder"
        else:
            found[name] = hashlib.sha256(each.read_bytes()).hexdigest()
    return found


def changed_files(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return what was added, removed or changed."""
    added = [f"{name} was made" for name in after if name not in before]
    removed = [f"{name} was removed" for name in before if name not in after]
    changed = [
        f"{name} was changed" for name in before if name in after and before[name] != after[name]
    ]
    return [*added, *removed, *changed]
