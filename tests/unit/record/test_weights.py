from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.workload.samples import a_workload
from trainmark.errors import DamagedData, DataError
from trainmark.record import weights as files
from trainmark.workload.layers import Dense, Flatten
from trainmark.workload.model import Weights, initial_weights, lay_out

MODEL = lay_out(a_workload(Flatten(), Dense(3), Dense(10)))
WEIGHTS = initial_weights(MODEL, seed=1)


def file_of(header: Any, body: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def tensor(shape: list[Any], start: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"t": {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}}


def test_weights_come_back_bit_by_bit(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    files.save(WEIGHTS, path)
    back = files.load(path)
    assert list(back) == ["dense1.kernel", "dense1.bias", "dense2.kernel", "dense2.bias"]
    for name, value in WEIGHTS.items():
        assert back[name].dtype == np.float32
        assert back[name].shape == value.shape
        assert back[name].tobytes() == value.tobytes()
    assert [file.name for file in tmp_path.iterdir()] == ["w.safetensors"]


def test_special_numbers_and_transposed_arrays_come_back(tmp_path: Path) -> None:
    weights: Weights = {
        "special": np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32),
        "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "scalar": np.array(7, np.float32),
    }
    files.save(weights, tmp_path / "w")
    back = files.load(tmp_path / "w")
    for name, value in weights.items():
        np.testing.assert_array_equal(back[name], value, strict=True)
    back["special"][0] = 1  # and it can be written to


def test_the_file_is_a_safetensors_file(tmp_path: Path) -> None:
    files.save(
        {"a": np.array([[1, 2]], np.float32), "b": np.array([3], np.float32)}, tmp_path / "w"
    )
    content = (tmp_path / "w").read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    assert length % 8 == 0
    assert json.loads(content[8 : 8 + length]) == {
        "a": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
        "b": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]},
    }
    assert content[8 + length :] == struct.pack("<3f", 1, 2, 3)


def test_metadata_of_another_tool_is_ignored(tmp_path: Path) -> None:
    header = {"__metadata__": {"format": "pt"}, **tensor([1], 0, 4)}
    (tmp_path / "w").write_bytes(file_of(header, struct.pack("<f", 2.5)))
    assert files.load(tmp_path / "w") == {"t": np.float32(2.5)}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x01\x02", id="shorter than a length"),
        pytest.param(struct.pack("<Q", 0), id="no header"),
        pytest.param(file_of(b"{}", length=100), id="header longer than the file"),
        pytest.param(file_of(b"{}", length=2**63), id="huge header"),
        pytest.param(file_of(b" " * (2**20 + 1) + b"{}"), id="header above the limit"),
        pytest.param(file_of(b"not JSON"), id="header is not JSON"),
        pytest.param(file_of(b"\xff\xfe"), id="header is not text"),
        pytest.param(file_of(b"[" * 100_000), id="header nested too deeply"),
        pytest.param(file_of([1]), id="header is a list"),
        pytest.param(file_of({"t": 3}), id="tensor is a number"),
        pytest.param(file_of({"t": {"dtype": "F32"}}), id="tensor without shape"),
        pytest.param(file_of(tensor([2], 0, 8), b"1234"), id="truncated"),
        pytest.param(
            file_of(tensor([10**11, "x"], 0, 8), b"12345678"), id="shape that multiplies a text"
        ),
        pytest.param(
            file_of(tensor([10**11, [0]], 0, 8), b"12345678"), id="shape that multiplies a list"
        ),
        pytest.param(file_of(tensor([True, 2], 0, 8), b"12345678"), id="truth in a shape"),
        pytest.param(file_of(tensor([3], 0, 8), b"12345678"), id="shape larger than its bytes"),
        pytest.param(file_of(tensor([1], 0, 8), b"12345678"), id="shape smaller than its bytes"),
        pytest.param(file_of(tensor([1], -4, 0), b"12345678"), id="negative start"),
        pytest.param(file_of(tensor([-1], 4, 0), b"12345678"), id="end before start"),
        pytest.param(file_of(tensor([-1, -1], 0, 4), b"12345678"), id="negative sides"),
        pytest.param(file_of(tensor([1.0], 0, 4), b"12345678"), id="side is a fraction"),
        pytest.param(file_of(tensor(["a"], 0, 4), b"12345678"), id="side is a text"),
        pytest.param(file_of(tensor([1], 0, 4, "F64"), b"12345678"), id="float64"),
        pytest.param(file_of(tensor([2], 0, 8, "BF16"), b"12345678"), id="bfloat16"),
        pytest.param(
            file_of({"t": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, b"1234"),
            id="one offset",
        ),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(
        DamagedData, match="w has no valid weights: expected a safetensors file of float32 tensors"
    ):
        files.load(tmp_path / "w")


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    files.save({"a": np.ones(3, np.float32), "b": np.ones(2, np.float32)}, tmp_path / "w")
    content = (tmp_path / "w").read_bytes()
    for length in range(len(content)):
        (tmp_path / "w").write_bytes(content[:length])
        with pytest.raises(DamagedData):
            files.load(tmp_path / "w")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DamagedData, match="No such file"):
        files.load(tmp_path / "nowhere")


def test_weights_that_fit_are_taken() -> None:
    files.require_fit(WEIGHTS, MODEL, Path("w"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"dense1.kernel": np.zeros((3, 16), np.float32)},
            r"at dense1.kernel: .*\(16, 3\), found the shape \(3, 16\)",
        ),
        (
            {"dense2.bias": np.zeros((1, 10), np.float32)},
            r"at dense2.bias: .*\(10,\), found the shape \(1, 10\)",
        ),
        ({"dense2.kernel": None}, r"at dense2.kernel: .*\(3, 10\), found no such tensor"),
        ({"dense3.kernel": np.zeros((10, 10), np.float32)}, "dense3.kernel"),
    ],
)
def test_weights_of_another_network_are_refused(change: dict[str, Any], message: str) -> None:
    weights = {name: value for name, value in (WEIGHTS | change).items() if value is not None}
    with pytest.raises(DataError, match=message):
        files.require_fit(weights, MODEL, Path("w"))


def test_the_digest_changes_with_one_bit_and_with_a_name() -> None:
    digest = files.digest(WEIGHTS)
    assert len(digest) == 64
    assert files.digest({name: value.copy() for name, value in reversed(WEIGHTS.items())}) == digest
    flipped = WEIGHTS["dense1.kernel"].copy()
    flipped.view(np.uint32)[0, 0] ^= 1
    assert files.digest(WEIGHTS | {"dense1.kernel": flipped}) != digest
    renamed = {name.replace("dense1", "dense9"): value for name, value in WEIGHTS.items()}
    assert files.digest(renamed) != digest


def test_saving_survives_a_round_of_digests(tmp_path: Path) -> None:
    files.save(WEIGHTS, tmp_path / "w")
    assert files.digest(files.load(tmp_path / "w")) == files.digest(WEIGHTS)


def test_the_same_bytes_are_no_two_tensors(tmp_path: Path) -> None:
    """Otherwise a header of a megabyte could make thousands of large arrays of one."""
    path = tmp_path / "w.safetensors"
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    path.write_bytes(file_of({"a": entry, "b": entry}, bytes(8)))
    with pytest.raises(DamagedData, match="starts at byte 0, the previous one ends at 8"):
        files.load(path)


@pytest.mark.parametrize("shape", [[2**70, 0], [-1, -2], ["2"], [1.0, 2], [None], 2, [True, 2], {}])
def test_odd_shapes(tmp_path: Path, shape: Any) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(
        file_of({"t": {"dtype": "F32", "shape": shape, "data_offsets": [0, 8]}}, bytes(8))
    )
    with pytest.raises(DamagedData):
        files.load(path)


def test_a_file_without_an_end_is_not_read() -> None:
    with pytest.raises(DamagedData, match="not a regular file"):
        files.load(Path("/dev/zero"))
