"""Trust the configuration file of a folder, withdraw that, and show what is trusted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmark.cli.configuration import search, trusted_folders
from trainmark.cli.configuration.trusted_folders import TrustedFolder
from trainmark.cli.output import print_message, show
from trainmark.errors import UsageError
from trainmark.report.table import Cell, Field, table_of
from trainmark.study.options import working_folder

if TYPE_CHECKING:
    from trainmark.cli.main import Verbs


def trust_here(group: Verbs, verbs: Iterable[str]) -> TrustedFolder:
    """Trust the nearest file with the values that it has now.

    Raises:
        UsageError: there is no file.
    """
    found = search.find(working_folder(), of_anyone=True)
    if found.file is None:
        raise UsageError(
            "there is nothing to trust here",
            expected=f"{search.NAME}, or [tool.trainmark] in {search.SHARED}, in this folder or "
            "one above, up to the root of the repository or your home folder",
        )
    trusted = trusted_folders.trust(found.file.parent, found.needing_trust(verbs, group.verb))
    print_message(
        f"trusted {found.file}. If it sets one of these options to another value, trust it again"
    )
    return trusted


def withdraw(folder: str) -> None:
    """Withdraw the trust in ``folder``; by default in the nearest folder that is trusted.

    Raises:
        UsageError: it is not trusted.
    """
    here = working_folder()
    for each in (Path(folder),) if folder else (here, *here.parents):
        if trusted_folders.withdraw(each):
            print_message(f"{each} is no longer trusted")
            return
    raise UsageError(
        f"{folder or here} is not trusted", fix="`trainmark config --trusted` lists folders."
    )


def show_folders(folders: Sequence[TrustedFolder], *, as_json: bool) -> None:
    """Show folders, and the settings that are trusted in each."""
    rows = [row for folder in folders for row in _rows(folder)]
    table = table_of(
        rows,
        (
            Field("folder", lambda row: Cell(row["folder"], tone="strong")),
            Field("option", lambda row: row["option"] or "-"),
            Field("value", lambda row: "-" if row["option"] is None else _written(row["value"])),
        ),
        title="Trusted folders" if rows else "No folder is trusted.",
    )
    show(rows, [table], as_json=as_json)


def _rows(folder: TrustedFolder) -> list[dict[str, Any]]:
    """Return a row for each setting; one without an option if there are none."""
    rows = [
        {"folder": folder.folder, "option": option, "value": value}
        for option, value in folder.settings.items()
    ]
    return rows or [{"folder": folder.folder, "option": None, "value": None}]


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
