"""Write small, valid seed inputs of every target into ``fuzz/corpus``: ``python -m fuzz.seeds``."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.records import every_kind
from fuzz.targets import wire
from trainmark.data import cifar10, idx
from trainmark.record import codec
from trainmark.workload import catalog

CORPUS = Path(__file__).parent / "corpus"
RESULTS = Path(__file__).parents[1] / "docs" / "results"
FEW = 3
LOG = {"step": 1, "loss": 1.0, "samples_per_second": 100.0, "seconds_per_step": 0.1}


def main() -> None:
    """Write the seeds of all targets."""
    digits = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    labels = np.array([3, 7], np.uint8)
    put("idx", "images", b"\0" + idx.encode(digits))
    put("idx", "labels", b"\1" + idx.encode(np.array([1, 2, 3], np.uint8)))
    put("cifar", "repeated", bytes([128 + 2, 9, 1, 2, 3, 4, 5]))
    put("cifar", "whole", b"\1" + bytes([9]) + bytes(cifar10.RECORD - 1))
    files = {"images": idx.encode(digits), "labels": idx.encode(labels)}
    put("compressed", "tar", b"\0" + _tar(files))
    put("compressed", "plain", b"\1" + files["images"])
    put("compressed", "gzip", b"\1" + gzip.compress(files["images"], mtime=0))
    put("weights", "two", _weights({"dense1.kernel": (2, 3), "dense1.bias": (3,)}))
    for name in catalog.names():
        if ":" not in name:
            text = (Path(catalog.__file__).parent / f"{name}.toml").read_text("utf-8")
            put("toml", name, text.partition("[published]")[0].partition("[[published")[0].encode())
    for path in sorted(RESULTS.rglob("*.json")):
        record = json.loads(path.read_bytes())
        if isinstance(record, dict) and "schema_version" in record:
            put("record", path.parent.name, _small(record))
    for name, one in every_kind().items():
        put("record", name, _small(json.loads(codec.encode(one))))
    lines: list[dict[str, Any]] = [
        {"event": "hello", "language": "C"},
        {"event": "begin"},
        {
            "event": "epoch",
            "index": 0,
            "loss": 2.3,
            "accuracy": 0.1,
            "examples": 10,
            "steps": 5,
            "packages": {"a": "1"},
        },
        {"event": "test", "loss": "nan", "accuracy": 0.5},
        {"event": "epoch", "loss": 1.5, "data_wait_seconds": 0.1},
    ]
    told = [
        json.dumps({"trainmark": 1, "t": 1_001.0 + at, **line}).encode()
        for at, line in enumerate(lines)
    ]
    epoch = {
        "event": "EpochEnded",
        "index": 0,
        "start": 1.0,
        "seconds": 2.0,
        "steps": 2,
        "examples": 256,
        "losses": [2.0, 1.0],
        "l2_losses": None,
        "log": [LOG],
        "train_loss": 1.5,
        "train_accuracy": 0.5,
    }
    ready = {
        "event": "Ready",
        "seconds": 0.5,
        "packages": {"numpy": "2"},
        "steps": 4,
        "epochs": 2,
        "weights_sha256": "a",
    }
    tested = {
        "event": "Evaluated",
        "index": 0,
        "seconds": 0.1,
        "test_loss": 1.0,
        "test_accuracy": 0.5,
    }
    finished = {
        "event": "Finished",
        "settings": {"a": [1]},
        "unchanged_weights": [],
        "host_peak_bytes": 1,
    }
    failed = {"event": "Failed", "reason": "no memory"}
    training: list[dict[str, Any]] = [
        ready,
        {"event": "Compiled", "seconds": None},
        epoch,
        tested,
        finished,
    ]
    said("Train", [*training, failed])
    said(
        "Train",
        [
            ready,
            {**epoch, "l2_losses": [0.1, 0.2]},
            {"event": "Diverged", "reason": "r", "step": 1, "before": 2.0},
        ],
    )
    hello = {"event": "RankBorn", "rank": 0, "local_rank": 0, "host": "h"}
    ranks = [{"event": "OfRank", "rank": 0, "message": message} for message in (hello, *training)]
    said("StartRanks", [*ranks, *training])
    reported = {
        "event": "EpochEnded",
        "index": 0,
        "start": 1.0,
        "seconds": 1.0,
        "steps": None,
        "examples": 3,
        "data_wait_seconds": None,
        "packages": {"torch": "2"},
        "losses": [],
        "log": [],
        "train_loss": 0.5,
    }
    exited = {
        "event": "CommandExited",
        "code": 0,
        "seconds": 1.0,
        "user_seconds": 1.0,
        "system_seconds": 0.0,
        "host_peak_bytes": None,
        "left": 0,
        "left_out": 1,
        "odd": ["x"],
        "packages": {},
        "language": "C",
    }
    started = {"event": "CommandStarted", "pid": 99, "start": 0.1}
    told_of_it = {
        "event": "Evaluated",
        "index": 0,
        "seconds": 0.1,
        "test_loss": None,
        "test_accuracy": 0.5,
    }
    said("RunScript", [{**ready, "seconds": None}, started, reported, told_of_it, exited, finished])
    device = {
        "id": "cpu",
        "name": "CPU",
        "kind": "cpu",
        "memory_bytes": None,
        "precisions": ["fp32"],
    }
    can: dict[str, Any] = {"name": "numpy", "version": "2", "styles": ["fast"], "devices": [device],
            "kinds": ["dense"], "untested": False, "spreads": None, "packages": {}}  # fmt: skip
    able: dict[str, Any] = {
        "event": "Capable",
        "capabilities": can,
        "limited": True,
        "python": "3.11",
    }
    said("Probe", [able])
    tensor = {
        "kind": "activation",
        "name": "relu1",
        "finite": True,
        "largest": 1.0,
        "zeros": 0.5,
        "dead": None,
    }
    opened = {
        "step": 0,
        "loss": 1.0,
        "tensors": [tensor],
        "reference_loss": 1.0,
        "gap": 0.1,
        "bad_labels": [],
        "unchanged": [],
        "finite_after": True,
        "moved": {"dense1.kernel": 0.1},
        "alone": [],
    }
    inspected = {"event": "StepInspected", "inspection": opened}
    said(
        "ReplayTraining",
        [{"event": "Replayed", "losses": [1.0, 2.0], "failed_at": None}, inspected],
    )
    put("hook", "two-epochs", b"\x1f" + b"\n".join(told) + b"\n")


def said(asked: str, messages: list[dict[str, Any]]) -> None:
    """Write the answers of a process."""
    lines = b"\n".join(json.dumps(message, separators=(",", ":")).encode() for message in messages)
    name = f"{asked}-{messages[-1]['event']}"
    put("wire", name, bytes([wire.ASKED.index(asked), 63]) + lines + b"\n")


def put(target: str, name: str, content: bytes) -> None:
    """Write one input."""
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    (CORPUS / target / f"seed-{name}").write_bytes(content)


def _small(record: dict[str, Any]) -> bytes:
    return json.dumps(_trimmed(record), separators=(",", ":")).encode()


def _trimmed(value: Any) -> Any:
    """Keep the first few items of every list, and shorten long text, since inputs should be
    small."""
    if isinstance(value, dict):
        return {key: _trimmed(item) for key, item in value.items() if key != "published"}
    if isinstance(value, list):
        return [_trimmed(item) for item in value[:FEW]]
    return value[:200] if isinstance(value, str) else value


def _tar(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def _weights(shapes: dict[str, tuple[int, ...]]) -> bytes:
    header: dict[str, Any] = {}
    at = 0
    for name, shape in shapes.items():
        size = 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + np.arange(at // 4, dtype="<f4").tobytes()


if __name__ == "__main__":
    main()
