"""Remove one defence after the other from a copy of trainmark: the test of its fault must fail.

    python -m bench.defences [NAME ...]

The rows are those of docs/reliability.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = "tests/unit/data"
END = "tests/end_to_end"
UNIT = "tests/unit"


@dataclass(frozen=True)
class Defence:
    """A defence, which keeps a fault from doing harm.

    Args:
        fault: what goes wrong, as docs/reliability.md calls it.
        test: that shows the defence at work.
        file: of the package, in which it stands.
        cuts: what is replaced by what.
    """

    fault: str
    test: str
    file: str
    cuts: tuple[tuple[str, str], ...]


NO_RECORD = (
    (
        "        if not self._all_written and not self.crowded_out:\n            "
        "self._write(outcome)",
        "        pass",
    ),
)
FAILING = f"{END}/test_faults.py::test_a_failing_run_is_recorded_and_the_others_go_on"
NO_CATCH = (("except (KeyboardInterrupt, click.Abort):", "except ZeroDivisionError:"),)
PHASES = f"{END}/test_interrupts.py::test_at_each_phase"

DEFENCES = (
    Defence(
        "child killed (SIGKILL)", f"{FAILING}[kill---]", "execute/parent/conversation.py", NO_RECORD
    ),
    Defence(
        "child killed (SIGSEGV)",
        f"{FAILING}[crash---]",
        "execute/parent/conversation.py",
        NO_RECORD,
    ),
    Defence(
        "out of memory (limit of the process)",
        f"{END}/test_shortages.py::test_too_little_memory_by_the_limit_of_a_process",
        "execute/worker/main.py",
        (("isinstance(error, MemoryError) or", "False or"),),
    ),
    Defence(
        "out of memory (control group)",
        f"{END}/test_shortages.py::test_too_little_memory_by_the_control_group",
        "execute/parent/process.py",
        (("if code == -signal.SIGKILL and", "if False and"),),
    ),
    Defence(
        "hung child",
        f"{END}/test_faults.py::test_a_hung_run_ends_by_its_timeout",
        "execute/parent/process.py",
        (("if self._timeout is not None and active > self._timeout:", "if False:"),),
    ),
    Defence(
        "folder that may not be looked at",
        f"{END}/test_closed.py::test_a_folder_that_is_closed",
        "regular.py",
        (("        return error.strerror or str(error)\n", "        raise\n"),),
    ),
    Defence(
        "name that is too long",
        f"{END}/test_closed.py::test_a_name_that_is_too_long",
        "regular.py",
        (("        return error.strerror or str(error)\n", "        raise\n"),),
    ),
    Defence(
        "full disk under what is printed",
        f"{END}/test_streams.py::test_a_disk_that_is_full_under_what_is_printed",
        "cli/streams.py",
        (("except OSError as error:", "except ZeroDivisionError as error:"),),
    ),
    Defence(
        "full disk under what is said on the way",
        f"{END}/test_streams.py::test_a_log_on_a_full_disk_does_not_end_the_command",
        "cli/streams.py",
        (("contextlib.suppress(OSError)", "contextlib.nullcontext()"),),
    ),
    Defence(
        "data that is closed",
        f"{END}/test_closed.py::test_data_that_is_closed_is_not_fallen_past",
        "data/folder.py",
        (
            (
                "contextlib.suppress(FileNotFoundError, NotADirectoryError)",
                "contextlib.suppress(OSError)",
            ),
        ),
    ),
    Defence(
        "streams closed",
        f"{END}/test_streams.py::test_streams_that_are_closed",
        "cli/streams.py",
        (
            (
                "            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)\n",
                "            pass\n",
            ),
        ),
    ),
    Defence(
        "terminal without UTF-8",
        f"{END}/test_streams.py::test_letters_that_a_terminal_lacks_end_nothing",
        "cli/streams.py",
        (('        errors="replace",', '        errors="strict",'),),
    ),
    Defence(
        "JSON, CSV or Markdown without UTF-8",
        f"{END}/test_streams.py::test_what_may_be_read_as_a_file_is_utf_8",
        "cli/output.py",
        (('text.encode(errors="replace")', "text"),),
    ),
    Defence(
        "hung import",
        f"{UNIT}/execute/test_probe.py::test_an_import_that_hangs_is_given_up",
        "execute/parent/probe.py",
        (("ask(interpreter.path, request, timeout=timeout)", "ask(interpreter.path, request)"),),
    ),
    Defence(
        "Ctrl-C while backends are asked", f"{PHASES}[asking-1-ctrl-c]", "cli/main.py", NO_CATCH
    ),
    Defence(
        "Ctrl-C while limits are measured", f"{PHASES}[limits-2-ctrl-c]", "cli/main.py", NO_CATCH
    ),
    Defence(
        "Ctrl-C while training",
        f"{PHASES}[training-3-ctrl-c]",
        "execute/parent/scheduler.py",
        (
            (
                '            conversation.break_off(Outcome("interrupted", "Ctrl-C or SIGTERM"))\n',
                "            pass\n",
            ),
        ),
    ),
    Defence(
        "SIGTERM while training",
        f"{PHASES}[training-3-sigterm]",
        "cli/interrupts.py",
        (("    signal.signal(signal.SIGTERM, ends)", "    pass"),),
    ),
    Defence(
        "Ctrl-C while a module is imported that drops it",
        "tests/cli/test_interrupts.py::test_a_module_that_drops_what_is_raised_in_it_does_not_drop_an_interrupt[SIGINT]",
        "cli/interrupts.py",
        (("            return True\n        frame", "            return False\n        frame"),),
    ),
    Defence(
        "Ctrl-C while changes to a script are tried",
        f"{END}/test_explain_script.py::test_ctrl_c_shows_what_was_measured",
        "study/explain/own_script.py",
        (("except KeyboardInterrupt:", "except ZeroDivisionError:"),),
    ),
    Defence(
        "Ctrl-C while data is made",
        f"{END}/test_interrupts.py::test_while_data_is_made",
        "cli/main.py",
        NO_CATCH,
    ),
    Defence(
        "Ctrl-C while an interpreter hangs",
        f"{END}/test_interrupts.py::test_while_an_interpreter_hangs",
        "execute/parent/process.py",
        (("                stack.callback(end, self._process, ours)\n", ""),),
    ),
    Defence(
        "kill -9 of trainmark: children",
        f"{END}/test_faults.py::test_children_die_with_a_killed_parent",
        "execute/worker/main.py",
        (("        lifeline.tie(channel, turns.put, before_end)\n", "        pass\n"),),
    ),
    Defence(
        "kill -9 of trainmark: --resume",
        f"{END}/test_interrupts.py::test_kill_9_keeps_what_is_finished_and_resume_does_the_rest",
        "execute/parent/task.py",
        (('if end == "ok")', "if False)"),),
    ),
    Defence(
        "kill -9 of trainmark: half-written files",
        f"{UNIT}/record/test_store.py::test_what_a_killed_process_left_half_written_goes_when_the_folder_is_used_again",
        "record/store.py",
        (("                self._sweep()\n", ""),),
    ),
    Defence(
        "kill -9 of trainmark: half-written records",
        f"{UNIT}/record/test_store.py::test_a_reader_never_sees_a_part",
        "regular.py",
        (
            (
                '        with os.fdopen(handle, "wb") as file:',
                '        with path.open("wb", buffering=4096) as file:',
            ),
        ),
    ),
    Defence(
        "kill -9 of trainmark: scratch folders",
        f"{UNIT}/execute/test_scratch.py::test_one_whose_owner_was_killed_goes_with_the_next",
        "execute/parent/scratch.py",
        (("    _sweep(top)\n", ""),),
    ),
    Defence(
        "disk that fills up",
        f"{END}/test_shortages.py::test_a_disk_that_fills_up_costs_no_finished_run",
        "record/store.py",
        (("fix=_rescued(path.name, content)", 'fix=""'),),
    ),
    Defence(
        "disk that is full",
        f"{END}/test_shortages.py::test_a_disk_that_is_full_already",
        "record/store.py",
        (
            (
                "                self._sweep()\n            except OSError as error:",
                "                self._sweep()\n            except KeyError as error:",
            ),
        ),
    ),
    Defence(
        "read-only folder",
        f"{END}/test_shortages.py::test_a_disk_that_can_only_be_read",
        "record/store.py",
        (
            (
                'open("a+b", buffering=0)\n        except OSError as error:',
                'open("a+b", buffering=0)\n        except KeyError as error:',
            ),
        ),
    ),
    Defence(
        "clock that jumps",
        f"{END}/test_shortages.py::test_a_clock_that_jumps_changes_no_measurement",
        "execute/worker/main.py",
        (
            (
                "train(request, send, tick, time.perf_counter, turns)",
                "train(request, send, tick, time.time, turns)",
            ),
        ),
    ),
    Defence(
        "two runs in one folder",
        f"{END}/test_faults.py::test_two_runs_into_one_folder",
        "record/store.py",
        (
            (
                "                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
                "                pass\n",
            ),
        ),
    ),
    Defence(
        "download that breaks off",
        f"{DATA}/test_fetch.py::test_a_failed_download_leaves_nothing_in_the_cache",
        "data/fetch.py",
        (("tempfile.TemporaryFile(dir=directory)", '(directory / "part").open("w+b")'),),
    ),
    Defence(
        "Ctrl-C during a download",
        f"{DATA}/test_fetch.py::test_an_interrupted_download_leaves_nothing_in_the_cache",
        "data/fetch.py",
        (("tempfile.TemporaryFile(dir=directory)", '(directory / "part").open("w+b")'),),
    ),
    Defence(
        "no network: the reason",
        f"{DATA}/test_download.py::test_a_host_that_cannot_be_reached",
        "data/download.py",
        (("raise Unreachable(", "raise DownloadFailed("),),
    ),
    Defence(
        "no network: the wait",
        f"{DATA}/test_fetch.py::test_without_a_network_the_last_mirrors_are_not_waited_for",
        "data/fetch.py",
        (("            waited += time.monotonic() - begin\n", ""),),
    ),
    Defence(
        "disk that fills up during a download",
        f"{DATA}/test_locate.py::test_a_full_disk",
        "data/locate.py",
        (
            (
                "    except OSError as error:\n        raise DataUnavailable",
                "    except EOFError as error:\n        raise DataUnavailable",
            ),
        ),
    ),
    Defence(
        "mirror that serves a web page",
        f"{DATA}/test_download.py::test_other_things_are_refused",
        "data/download.py",
        (('.startswith("text/html"):', '.startswith("-"):'),),
    ),
    Defence(
        "mirror that hangs",
        f"{DATA}/test_download.py::test_a_stall_ends",
        "data/download.py",
        (("stream=True, timeout=timeout,", "stream=True, timeout=None,"),),
    ),
    Defence(
        "truncated gzip",
        f"{DATA}/test_stored.py::test_gzip_cut_off_is_noticed",
        "data/stored.py",
        (("    if not stream.eof and len(payload) <= known.size:", "    if False:"),),
    ),
    Defence(
        "bomb",
        f"{DATA}/test_stored.py::test_a_bomb_does_not_fill_the_memory",
        "data/stored.py",
        (("stream.decompress(stored, known.size + 1)", "stream.decompress(stored)"),),
    ),
    Defence(
        "bomb in an archive",
        f"{DATA}/test_unpack.py::test_a_member_that_is_a_bomb_is_read_to_its_known_size",
        "data/unpack.py",
        (("content.read(file.size + 1)", "content.read()"),),
    ),
    Defence(
        "checksum of another file",
        f"{DATA}/test_fetch.py::test_the_next_mirror_serves_what_one_could_not",
        "data/fetch.py",
        (
            (
                "                _check(hashlib.sha256(payload).hexdigest(), file.sha256, "
                "file.name)\n",
                "",
            ),
        ),
    ),
    Defence(
        "checksum of another archive",
        f"{DATA}/test_fetch.py::test_an_archive_with_a_wrong_checksum_is_not_opened",
        "data/fetch.py",
        (("if mirror.sha256 is not None:", "if False:"),),
    ),
    Defence(
        "cache deleted under a run",
        f"{END}/test_shortages.py::test_a_cache_deleted_under_a_run",
        "data/load.py",
        (("    if holding is None or not holding.usable:", "    if False:"),),
    ),
)


def without(defence: Defence) -> tuple[bool, str]:
    """Return whether the test failed without its defence, and pytest's last line."""
    with tempfile.TemporaryDirectory(prefix="defences-") as folder:
        copy = Path(folder)
        for part in ("src", "tests", "bench"):
            shutil.copytree(
                ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
            )
        shutil.copy(ROOT / "pyproject.toml", copy)
        file = copy / "src" / "trainmark" / defence.file
        text = file.read_text()
        for old, new in defence.cuts:
            if old not in text:
                return False, f"{defence.file} no longer has {old!r}"
            text = text.replace(old, new)
        file.write_text(text)
        options = ["-q", "-n0", "-p", "no:cacheprovider", "--durations=0", "--timeout=120"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, defence.test],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
    if "Timeout" in done.stdout + done.stderr:
        return True, "hung until the test's own timeout"
    ends = [
        line
        for line in done.stdout.splitlines()
        if re.search(r"\d (passed|failed|skipped).* in ", line)
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
