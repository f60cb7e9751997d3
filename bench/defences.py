"""Remove one defence after the other from a copy of trainmark: the test of its fault must fail.

    python -m bench.defences [NAME ...]

The rows are those of docs/reliability.md.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = "tests/unit/data"
END = "tests/end_to_end"
UNIT = "tests/unit"
TEST_SECONDS = 120
"""Time limit of one test, in seconds. A test that hangs without its defence counts as red."""


class CutDoesNotApply(Exception):
    """The package no longer has the function or the code that a cut replaces."""


@dataclass(frozen=True)
class Cut:
    """Code in one function of the package, and what replaces it.

    Code is compared as syntax, so formatting and comments don't matter.

    Args:
        module: its module.
        function: the qualified name of the function in the module, such as ``Store.write``.
        code: an expression or one statement in the function. It is replaced wherever it occurs.
        instead: the expression or statement that replaces it.
    """

    module: str
    function: str
    code: str
    instead: str

    def apply(self, source: str) -> str:
        """Return the source of the module without the code.

        Raises:
            CutDoesNotApply: there is no such function, or it does not contain the code.
        """
        tree = ast.parse(source)
        replacement = _Replacement(_syntax(self.code), _syntax(self.instead))
        replacement.visit(_function(tree, self.function))
        if not replacement.count:
            raise CutDoesNotApply(f"{self.function} no longer contains: {self.code}")
        return ast.unparse(ast.fix_missing_locations(tree))

    def apply_to(self, folder: Path) -> None:
        """Apply it to the module's file in a folder that contains the package.

        Raises:
            CutDoesNotApply: as for :meth:`apply`, or the module is gone.
        """
        file = folder.joinpath(*self.module.split(".")).with_suffix(".py")
        if not file.is_file():
            raise CutDoesNotApply(f"{self.module} no longer exists")
        file.write_text(self.apply(file.read_text()))


class _Replacement(ast.NodeTransformer):
    """Replaces every node that equals ``old``, and counts them."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old = ast.dump(old)
        self._new = new
        self.count = 0

    def visit(self, node: ast.AST) -> ast.AST:
        """Replace the node, or search in it."""
        if ast.dump(node) != self._old:
            return self.generic_visit(node)
        self.count += 1
        return copy.deepcopy(self._new)


def _syntax(code: str) -> ast.AST:
    """Return the syntax of an expression or one statement."""
    (statement,) = ast.parse(code).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def _function(tree: ast.Module, name: str) -> ast.AST:
    """Return the function of a qualified name.

    Raises:
        CutDoesNotApply: there is none.
    """
    found: ast.AST = tree
    for part in name.split("."):
        inside = {
            each.name: each
            for each in ast.iter_child_nodes(found)
            if isinstance(each, ast.FunctionDef | ast.ClassDef)
        }
        if part not in inside:
            raise CutDoesNotApply(f"there is no {name} any more")
        found = inside[part]
    return found


@dataclass(frozen=True)
class Defence:
    """A defence, which keeps a fault from doing harm.

    Args:
        fault: what goes wrong, as docs/reliability.md calls it.
        test: that shows the defence at work.
        cut: takes the defence away.
    """

    fault: str
    test: str
    cut: Cut


NO_RECORD = Cut(
    "trainmark.execute.parent.conversation",
    "Conversation.break_off",
    "self._write(outcome)",
    "None",
)
FAILING = f"{END}/test_faults.py::test_a_failing_run_is_recorded_and_the_others_go_on"
NO_CATCH = Cut("trainmark.cli.main", "run", "(KeyboardInterrupt, click.Abort)", "ZeroDivisionError")
PHASES = f"{END}/test_interrupts.py::test_at_each_phase"

DEFENCES = (
    Defence("child killed (SIGKILL)", f"{FAILING}[kill---]", NO_RECORD),
    Defence("child killed (SIGSEGV)", f"{FAILING}[crash---]", NO_RECORD),
    Defence(
        "out of memory (limit of the process)",
        f"{END}/test_shortages.py::test_too_little_memory_by_the_limit_of_a_process",
        Cut("trainmark.execute.worker.main", "_reason", "isinstance(error, MemoryError)", "False"),
    ),
    Defence(
        "out of memory (control group)",
        f"{END}/test_shortages.py::test_too_little_memory_by_the_control_group",
        Cut("trainmark.execute.parent.process", "Worker._end", "code == -signal.SIGKILL", "False"),
    ),
    Defence(
        "hung child",
        f"{END}/test_faults.py::test_a_hung_run_ends_by_its_timeout",
        Cut(
            "trainmark.execute.parent.process",
            "Worker.attend",
            "self._timeout is not None and active > self._timeout",
            "False",
        ),
    ),
    Defence(
        "folder that may not be looked at",
        f"{END}/test_closed.py::test_a_folder_that_is_closed",
        Cut("trainmark.regular", "found_at", "return error.strerror or str(error)", "raise"),
    ),
    Defence(
        "name that is too long",
        f"{END}/test_closed.py::test_a_name_that_is_too_long",
        Cut("trainmark.regular", "found_at", "return error.strerror or str(error)", "raise"),
    ),
    Defence(
        "full disk under what is printed",
        f"{END}/test_streams.py::test_a_disk_that_is_full_under_what_is_printed",
        Cut("trainmark.cli.streams", "_Printed.write", "OSError", "ZeroDivisionError"),
    ),
    Defence(
        "full disk under what is said on the way",
        f"{END}/test_streams.py::test_a_log_on_a_full_disk_does_not_end_the_command",
        Cut(
            "trainmark.cli.streams",
            "_Said.write",
            "contextlib.suppress(OSError)",
            "contextlib.nullcontext()",
        ),
    ),
    Defence(
        "data that is closed",
        f"{END}/test_closed.py::test_data_that_is_closed_is_not_fallen_past",
        Cut(
            "trainmark.data.folder",
            "_path_of",
            "contextlib.suppress(FileNotFoundError, NotADirectoryError)",
            "contextlib.suppress(OSError)",
        ),
    ),
    Defence(
        "streams closed",
        f"{END}/test_streams.py::test_streams_that_are_closed",
        Cut(
            "trainmark.cli.streams",
            "stand_on_three",
            "os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)",
            "None",
        ),
    ),
    Defence(
        "terminal without UTF-8",
        f"{END}/test_streams.py::test_letters_that_a_terminal_lacks_end_nothing",
        Cut("trainmark.cli.streams", "_on", '"replace"', '"strict"'),
    ),
    Defence(
        "JSON, CSV or Markdown without UTF-8",
        f"{END}/test_streams.py::test_what_may_be_read_as_a_file_is_utf_8",
        Cut("trainmark.cli.output", "print_file", 'text.encode(errors="replace")', "text"),
    ),
    Defence(
        "hung import",
        f"{UNIT}/execute/test_probe.py::test_an_import_that_hangs_is_given_up",
        Cut(
            "trainmark.execute.parent.probe",
            "_ask",
            "ask(interpreter.path, request, timeout=timeout)",
            "ask(interpreter.path, request)",
        ),
    ),
    Defence("Ctrl-C while backends are asked", f"{PHASES}[asking-1-ctrl-c]", NO_CATCH),
    Defence("Ctrl-C while limits are measured", f"{PHASES}[limits-2-ctrl-c]", NO_CATCH),
    Defence(
        "Ctrl-C while training",
        f"{PHASES}[training-3-ctrl-c]",
        Cut(
            "trainmark.execute.parent.scheduler",
            "_run_together",
            'conversation.break_off(Outcome("interrupted", str(interrupt) or "Ctrl-C"))',
            "None",
        ),
    ),
    Defence(
        "SIGTERM while training",
        f"{PHASES}[training-3-sigterm]",
        Cut("trainmark.cli.interrupts", "install", "signal.signal(signal.SIGTERM, ends)", "None"),
    ),
    Defence(
        "Ctrl-C while a module is imported that drops it",
        "tests/cli/test_interrupts.py::test_a_module_that_drops_what_is_raised_in_it_does_not_drop_an_interrupt[SIGINT]",
        Cut("trainmark.cli.interrupts", "_is_importing", "return True", "return False"),
    ),
    Defence(
        "Ctrl-C while changes to a script are tried",
        f"{END}/test_explain_script.py::test_ctrl_c_shows_what_was_measured",
        Cut(
            "trainmark.study.explain.own_script",
            "_Study._round",
            "KeyboardInterrupt",
            "ZeroDivisionError",
        ),
    ),
    Defence(
        "Ctrl-C while data is made", f"{END}/test_interrupts.py::test_while_data_is_made", NO_CATCH
    ),
    Defence(
        "Ctrl-C while an interpreter hangs",
        f"{END}/test_interrupts.py::test_while_an_interpreter_hangs",
        Cut(
            "trainmark.execute.parent.process",
            "Worker.__enter__",
            "stack.callback(self._end_process)",
            "None",
        ),
    ),
    Defence(
        "kill -9 of trainmark: children",
        f"{END}/test_faults.py::test_children_die_with_a_killed_parent",
        Cut(
            "trainmark.execute.worker.main",
            "_serve",
            "lifeline.tie(channel, turns.put, before_end)",
            "None",
        ),
    ),
    Defence(
        "kill -9 of trainmark: --resume",
        f"{END}/test_interrupts.py::test_kill_9_keeps_what_is_finished_and_resume_does_the_rest",
        Cut("trainmark.execute.parent.task", "remaining", 'end == "ok"', "False"),
    ),
    Defence(
        "kill -9 of trainmark: half-written files",
        f"{UNIT}/record/test_store.py::test_partial_files_of_a_killed_process_are_removed_later",
        Cut("trainmark.record.store", "Store.locked", "self._sweep()", "None"),
    ),
    Defence(
        "kill -9 of trainmark: half-written records",
        f"{UNIT}/record/test_store.py::test_a_reader_never_sees_a_part",
        Cut(
            "trainmark.regular",
            "write_atomically",
            'os.fdopen(handle, "wb")',
            'path.open("wb", buffering=4096)',
        ),
    ),
    Defence(
        "kill -9 of trainmark and its worker",
        f"{END}/test_supervisor.py::test_no_process_outlives_what_is_killed",
        Cut("trainmark.execute.worker.supervisor", "serve", "_end_all(process.pid)", "None"),
    ),
    Defence(
        "kill -9 of trainmark: scratch folders",
        f"{UNIT}/test_scratch.py::test_a_folder_of_a_killed_owner_is_removed_by_the_next",
        Cut("trainmark.scratch", "scratch_folder", "_sweep(top)", "None"),
    ),
    Defence(
        "disk that fills up",
        f"{END}/test_shortages.py::test_a_disk_that_fills_up_costs_no_finished_run",
        Cut("trainmark.record.store", "Store.write", "_rescued(path.name, content)", '""'),
    ),
    Defence(
        "disk that is full",
        f"{END}/test_shortages.py::test_a_disk_that_is_full_already",
        Cut("trainmark.record.store", "Store.locked", "OSError", "KeyError"),
    ),
    Defence(
        "read-only folder",
        f"{END}/test_shortages.py::test_a_disk_that_can_only_be_read",
        Cut("trainmark.record.store", "Store.locked", "OSError", "KeyError"),
    ),
    Defence(
        "clock that jumps",
        f"{END}/test_shortages.py::test_a_clock_that_jumps_changes_no_measurement",
        Cut(
            "trainmark.execute.worker.main",
            "_carry_out",
            "train(request, send, tick, time.perf_counter, turns)",
            "train(request, send, tick, time.time, turns)",
        ),
    ),
    Defence(
        "two runs in one folder",
        f"{END}/test_faults.py::test_two_runs_into_one_folder",
        Cut(
            "trainmark.record.folder_lock",
            "_taken",
            "locks.take(lock)",
            "None",
        ),
    ),
    Defence(
        "working folder /",
        f"{END}/test_closed.py::test_the_root_folder_is_not_copied",
        Cut(
            "trainmark.execute.parent.command",
            "Command.__post_init__",
            "self.scratch",
            "False",
        ),
    ),
    Defence(
        "download that breaks off",
        f"{DATA}/test_fetch.py::test_a_failed_download_leaves_nothing_in_the_cache",
        Cut(
            "trainmark.data.fetch",
            "_fetch_from",
            "tempfile.TemporaryFile(dir=directory)",
            '(directory / "part").open("w+b")',
        ),
    ),
    Defence(
        "Ctrl-C during a download",
        f"{DATA}/test_fetch.py::test_an_interrupted_download_leaves_nothing_in_the_cache",
        Cut(
            "trainmark.data.fetch",
            "_fetch_from",
            "tempfile.TemporaryFile(dir=directory)",
            '(directory / "part").open("w+b")',
        ),
    ),
    Defence(
        "no network: the reason",
        f"{DATA}/test_download.py::test_a_host_that_cannot_be_reached",
        Cut(
            "trainmark.data.download",
            "download",
            'raise Unreachable(f"no answer: {_cause(error)}") from error',
            'raise DownloadFailed(f"no answer: {_cause(error)}") from error',
        ),
    ),
    Defence(
        "no network: the wait",
        f"{DATA}/test_fetch.py::test_without_a_network_the_last_mirrors_are_not_waited_for",
        Cut("trainmark.data.fetch", "fetch", "waited += time.monotonic() - begin", "pass"),
    ),
    Defence(
        "disk that fills up during a download",
        f"{DATA}/test_locate.py::test_a_full_disk",
        Cut("trainmark.data.locate", "locate", "OSError", "EOFError"),
    ),
    Defence(
        "mirror that serves a web page",
        f"{DATA}/test_download.py::test_other_things_are_refused",
        Cut("trainmark.data.download", "download", '"text/html"', '"-"'),
    ),
    Defence(
        "mirror that hangs",
        f"{DATA}/test_download.py::test_a_stall_ends",
        Cut("trainmark.data.download", "download", "timeout", "None"),
    ),
    Defence(
        "truncated gzip",
        f"{DATA}/test_stored.py::test_gzip_cut_off_is_noticed",
        Cut(
            "trainmark.data.stored",
            "_gunzip",
            "not stream.eof and len(payload) <= known.size",
            "False",
        ),
    ),
    Defence(
        "bomb",
        f"{DATA}/test_stored.py::test_a_bomb_does_not_fill_the_memory",
        Cut(
            "trainmark.data.stored",
            "_gunzip",
            "stream.decompress(stored, known.size + 1)",
            "stream.decompress(stored)",
        ),
    ),
    Defence(
        "bomb in an archive",
        f"{DATA}/test_unpack.py::test_a_member_that_is_a_bomb_is_read_to_its_known_size",
        Cut("trainmark.data.unpack", "_tar", "content.read(file.size + 1)", "content.read()"),
    ),
    Defence(
        "checksum of another file",
        f"{DATA}/test_fetch.py::test_the_next_mirror_serves_what_one_could_not",
        Cut(
            "trainmark.data.fetch",
            "_fetch_from",
            "_check(hashlib.sha256(payload).hexdigest(), file.sha256, file.name)",
            "None",
        ),
    ),
    Defence(
        "checksum of another archive",
        f"{DATA}/test_fetch.py::test_an_archive_with_a_wrong_checksum_is_not_opened",
        Cut("trainmark.data.fetch", "_fetch_from", "mirror.sha256 is not None", "False"),
    ),
    Defence(
        "cache deleted under a run",
        f"{END}/test_shortages.py::test_a_cache_deleted_under_a_run",
        Cut("trainmark.data.load", "load", "holding is None or not holding.usable", "False"),
    ),
)


def run_tests(root: Path, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Run tests of a copy of the repository, also those that are marked slow.

    Args:
        root: the folder of the copy.
        tests: their ids.
    """
    options = ["-q", "-n0", "-p", "no:cacheprovider", "-m", "", f"--timeout={TEST_SECONDS}"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *dict.fromkeys(tests)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def without(defence: Defence) -> tuple[bool, str]:
    """Return whether the test failed without its defence, and pytest's last line."""
    with tempfile.TemporaryDirectory(prefix="defences-") as folder:
        root = Path(folder)
        for part in ("src", "tests", "bench"):
            shutil.copytree(
                ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
            )
        shutil.copy(ROOT / "pyproject.toml", root)
        try:
            defence.cut.apply_to(root / "src")
        except CutDoesNotApply as error:
            return False, str(error)
        done = run_tests(root, [defence.test])
    if re.search(r"Timeout \(?>|\+ Timeout \+", done.stdout + done.stderr):
        return True, "hung until the test's own timeout"
    ends = [
        line
        for line in done.stdout.splitlines()
        if re.search(r"\d (passed|failed|skipped|deselected).* in ", line)
    ]
    return done.returncode == 1 and "failed" in "".join(ends), (ends or [done.stdout[-200:]])[-1]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="only faults whose name contains it"
    )
    names = parser.parse_args().names
    chosen = [each for each in DEFENCES if not names or any(name in each.fault for name in names)]
    if not chosen:
        parser.error(f"no fault is called {' or '.join(names)}")
    # A test that fails anyway would prove nothing.
    unchanged = run_tests(ROOT, [each.test for each in chosen])
    if unchanged.returncode != 0:
        print(unchanged.stdout[-4000:])
        print("These tests must pass before their defences are taken away.")
        return 2
    green = []
    for defence in chosen:
        start = time.monotonic()
        red, said = without(defence)
        print(
            f"{'red' if red else 'GREEN':6}{defence.fault:52}{time.monotonic() - start:5.0f} s "
            f" {said}",
            flush=True,
        )
        green += [] if red else [defence.fault]
    print(f"{len(chosen) - len(green)} of {len(chosen)} tests turned red without their defence")
    return 1 if green else 0


if __name__ == "__main__":
    sys.exit(main())
