"""Frameworks examined in real processes, by the backends that need none installed."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path

import pytest

from trainmark.backends.examination import EXPECTED
from trainmark.execute.parent.examine import TIMEOUT_SECONDS, examine_all
from trainmark.execute.worker.main import loaded_libraries


def test_numpy_and_the_fake() -> None:
    numpy, fake = examine_all(names=("numpy", "fake"))
    assert numpy.installed and numpy.problem is None
    assert [product.values for product in numpy.products] == [EXPECTED]
    assert fake.gpus == ("cuda:0",)
    assert fake.examination is not None and fake.examination.architectures == ("sm_90",)


def test_what_was_learnt_before_a_crash_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMARK_FAKE", json.dumps({"fail": "crash", "only_on": "cuda:0"}))
    (fake,) = examine_all(names=("fake",))
    assert fake.examination is not None and fake.examination.built_for == "CUDA 13.0"
    on_cpu, on_gpu = fake.products
    assert on_cpu.values == EXPECTED
    assert on_gpu.values is None and "SIGSEGV" in (on_gpu.problem or "")


def test_ctrl_c_ends_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMARK_FAKE", json.dumps({"fail": "hang", "only_on": "cuda:0"}))
    main = threading.main_thread().ident
    start = time.monotonic()
    assert main is not None
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.5, signal.pthread_kill, [main, signal.SIGINT]).start()
        examine_all(names=("fake",))
    assert time.monotonic() - start < 0.9 * TIMEOUT_SECONDS


def test_one_that_hangs_is_ended() -> None:
    (found,) = examine_all(names=("numpy",), timeout=0.001)
    assert found.problem == "no answer within 0.001 s"
    assert found.version is not None  # the package has it, since the framework did not say


def test_one_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmark.backends.registry.Entry.installed", property(lambda _: False))
    (found,) = examine_all(names=("torch",))
    assert (found.installed, found.install) == (False, "pip install torch")


def test_libraries_in_this_process(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    lines = [
        "7f00-7f01 r-xp 00000000 08:01 11 /usr/lib/libcudnn.so.8",
        "7f01-7f02 r--p 00000000 08:01 11 /usr/lib/libcudnn.so.8",
        "7f02-7f03 r-xp 00000000 08:01 12 /venv/nvidia/cudnn/lib/libcudnn.so.9",
        "7f03-7f04 r-xp 00000000 08:01 13 /venv/nvidia/cublas/lib/libcublas.so.13",
        "7f04-7f05 r-xp 00000000 08:01 14 /usr/lib/libm.so.6",
        "7f05-7f06 rw-p 00000000 00:00 0 [heap]",
    ]
    maps.write_text("\n".join(lines) + "\n")
    assert loaded_libraries(maps) == {
        "cudnn": ["/usr/lib/libcudnn.so.8", "/venv/nvidia/cudnn/lib/libcudnn.so.9"],
        "cublas": ["/venv/nvidia/cublas/lib/libcublas.so.13"],
    }
    assert loaded_libraries(tmp_path / "absent") == {}
    assert json.dumps(loaded_libraries())
