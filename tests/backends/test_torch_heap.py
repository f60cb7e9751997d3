"""Memory that is freed and asked for again."""

import platform
import subprocess
import sys

import pytest

pytest.importorskip("torch")

STEPS = """
import resource
from trainmark.backends.torch import heap
kept = {keep} and heap.keep_freed_memory()
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def step(): blocks = [bytearray(size) for size in (19_000_000, 5_000_000, 19_000_000)]
step()
before = faults()
for _ in range(5): step()
print(kept, faults() - before)
"""


def printed(keep):
    done = subprocess.run([sys.executable, "-c", STEPS.format(keep=keep)], capture_output=True, text=True, check=True)
    kept, faults = done.stdout.split()
    return kept == "True", int(faults)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep freed memory")
def test_kept_memory_is_not_faulted_in_again():
    _, faults_without = printed(False)
    if faults_without < 1_000:
        pytest.skip(f"pages are so large here that only {faults_without} are faulted in without it")
    told, faults = printed(True)
    assert told
    assert faults < faults_without / 10


def test_without_glibc_nothing_is_promised(monkeypatch):
    from trainmark.backends.torch import heap

    monkeypatch.setattr(heap.ctypes, "CDLL", lambda name: object())
    assert heap.keep_freed_memory() is False
