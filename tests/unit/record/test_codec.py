from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmark.errors import ForeignRecord, NewerRecord, RecordError
from trainmark.record import codec
from trainmark.record.caveats import Caveat
from trainmark.record.record import (
    SCHEMA_VERSION,
    Energy,
    Epoch,
    Final,
    LogLine,
    Outcome,
    Peaks,
    Record,
    Samples,
)

from .samples import a_record

RECORD = a_record(caveats=[Caveat.BUSY_MACHINE, Caveat.ONE_EPOCH])


def written(record: Record = RECORD) -> dict[str, Any]:
    data = json.loads(codec.encode(record))
    assert isinstance(data, dict)
    return data


def read(data: object) -> Record:
    return codec.decode(json.dumps(data).encode(), "r.json")


def test_a_record_comes_back_as_it_was() -> None:
    assert codec.decode(codec.encode(RECORD), "r.json") == RECORD


@pytest.mark.parametrize(
    ("name", "value"), [("seconds", 0.0), ("seconds", "inf"), ("examples", 0), ("timed_steps", 9)]
)
def test_a_slice_without_a_speed_is_refused(name: str, value: object) -> None:
    slice_ = {
        "block": 0,
        "order": 0,
        "start_seconds": 1.0,
        "steps": 8,
        "timed_steps": 7,
        "seconds": 0.1,
        "examples": 70,
    }
    assert read({**written(), "slices": [slice_]}).slices
    with pytest.raises(RecordError, match="slice"):
        read({**written(), "slices": [{**slice_, name: value}]})


def test_a_record_with_everything_in_it_comes_back_as_it_was() -> None:
    record = a_record(
        outcome=Outcome("diverged", "loss is NaN at step 7", 7, 0.5, "last words\n"),
        step_losses=[2.3, 2.2],
        step_l2_losses=[0.1, 0.2],
        log=[LogLine(10, 2.2, 594.4, 0.215)],
        samples=Samples(
            interval_seconds=0.1,
            t=[0.0, 0.1],
            cpu_percent=[[], [2.0, None]],
            tree_cpu_percent=[None, 50.0],
            gpu_memory_bytes=[[None], [1 << 30]],
            gpu_throttle_bits=[[0], [None]],
        ),
        peaks=Peaks(2e11, None, {"cores": 2, "cpu_quota": None}),
        energy=Energy(None, None),
        price_per_hour=0.9,
        weights_from="another",
    )
    assert codec.decode(codec.encode(record), "r.json") == record


def test_numbers_that_are_not_finite_survive_as_strings() -> None:
    record = a_record(
        outcome=Outcome("diverged", step=2, loss_before=math.inf),
        epochs=[Epoch(0, 0.0, 1.0, 3, 30, train_loss=math.nan, test_loss=-math.inf)],
        step_losses=[1.0, math.inf, math.nan, -math.inf],
        step_l2_losses=[math.nan],
        log=[LogLine(1, math.nan, 10.0, 0.1)],
        final=Final(train_loss=math.nan, test_loss=math.inf),
    )
    data = written(record)
    assert data["step_losses"] == [1.0, "inf", "nan", "-inf"]
    assert (data["epochs"][0]["train_loss"], data["epochs"][0]["test_loss"]) == ("nan", "-inf")
    assert (data["outcome"]["loss_before"], data["final"]["train_loss"]) == ("inf", "nan")
    back = read(data)
    assert repr(back) == repr(record)  # NaN is not equal to itself
    assert math.isnan(back.epochs[0].train_loss or 0)


@given(st.lists(st.floats(), max_size=20))
def test_any_losses_come_back(losses: list[float]) -> None:
    back = codec.decode(
        codec.encode(msgspec.structs.replace(RECORD, step_losses=losses)), "r.json"
    ).step_losses
    assert [math.isnan(loss) or loss for loss in back] == [
        math.isnan(loss) or loss for loss in losses
    ]


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_a_text_that_reads_like_a_number_stays_a_text(text: str) -> None:
    record = a_record(
        id=text,
        command=text,
        machine=text,
        outcome=Outcome("failed", reason=text, stderr_tail=text),
        weights_from=text,
    )
    back = codec.decode(codec.encode(record), "r.json")
    assert back == record
    assert (back.id, back.command, back.machine.name, back.outcome.reason) == (text,) * 4


def test_the_published_nan_in_the_specification_stays_a_text() -> None:
    record = a_record(workload="mnist-mlp32")
    assert codec.decode(codec.encode(record), "r.json").workload.spec == record.workload.spec
    assert '"value": "nan"' in codec.encode(record).decode()


def test_unknown_is_null_and_never_zero() -> None:
    record = a_record(
        version=None,
        threads=None,
        train_loss=None,
        test_accuracy=None,
        setup_seconds=None,
        compile_seconds=None,
    )
    data = written(record)
    assert (
        data["threads"]
        is data["setup_seconds"]
        is data["price_per_hour"]
        is data["samples"]
        is None
    )
    assert (
        data["backend"]["version"]
        is data["final"]["train_loss"]
        is data["final"]["test_accuracy"]
        is None
    )
    assert data["epochs"][0]["test_loss"] is data["memory"]["host_peak_bytes"] is None
    assert read(data) == record


def test_text_in_any_language_is_written_readably() -> None:
    assert "Größe 寸法" in codec.encode(a_record(command="Größe 寸法")).decode()


def test_a_command_that_is_not_unicode_can_be_kept() -> None:
    """On Linux, bytes of an argument that are not UTF-8 arrive in ``sys.argv`` as lone
    surrogates."""
    command = b"trainmark run caf\xe9.toml".decode("utf-8", "surrogateescape")
    back = codec.decode(codec.encode(a_record(command=command)), "r.json")
    assert back.command.startswith("trainmark run caf")


def test_what_is_written_can_always_be_read() -> None:
    """A number that came out not finite where none is expected must not make a run's record
    unreadable."""
    record = a_record(price_per_hour=math.inf, log=[LogLine(1, 0.5, math.inf, 0.0)])
    assert codec.decode(codec.encode(record), "r.json").id == record.id


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", "an empty file"),
        (b" \n", "an empty file"),
        (b"\x00", "not JSON"),
        (b"hello", "not JSON"),
        (b'{"schema_version": 1', "not JSON"),
        (b'{"schema_version": 1} {}', "not JSON"),
        (b'{"schema_version": 1, "seed": NaN}', "not JSON"),
        (b"[" * 100_000 + b"]" * 100_000, "not JSON"),
        (b'{"a":' * 100_000, "not JSON"),
        (b"\x89PNG\r\n\x1a\n", "not JSON"),
        (b'{"name": "caf\xe9"}', "not JSON"),
        (b"null", "without the key 'schema_version'"),
        (b"[1, 2]", "without the key 'schema_version'"),
        (b'"schema_version"', "without the key 'schema_version'"),
        (b"{}", "without the key 'schema_version'"),
        (b'{"schema": 1, "checks": []}', "without the key 'schema_version'"),
        (b'{"schema_version": "1"}', "schema_version '1'"),
        (b'{"schema_version": true}', "schema_version True"),
        (b'{"schema_version": 0}', "schema_version 0"),
        (b'{"schema_version": 1.5}', "schema_version 1.5"),
        (b'{"schema_version": null}', "schema_version None"),
        (b'{"schema_version": 2}', "missing required field `id`"),
        (b'{"schema_version": 1}', "schema version 1, which was never released"),
    ],
)
def test_what_is_no_record_is_called_foreign(text: bytes, found: str) -> None:
    with pytest.raises(
        ForeignRecord, match=r"^r\.json is not a trainmark record: expected"
    ) as caught:
        codec.decode(text, "r.json")
    assert found in caught.value.found
    assert caught.value.fix


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("seed",), "1", "$.seed"),
        (("seed",), 1.5, "$.seed"),
        (("epochs",), {}, "$.epochs"),
        (("epochs",), "nan", "$.epochs"),
        (("epochs", 1, "seconds"), "fast", "$.epochs[1].seconds"),
        (("epochs", 1, "seconds"), "none", "$.epochs[1].seconds"),
        (("epochs", 1), 7, "$.epochs[1]"),
        (("epochs", 0, "train_loss"), "NaN", "$.epochs[0].train_loss"),
        (("step_losses",), ["nan", "none"], "$.step_losses[1]"),
        (("outcome",), 3, "$.outcome"),
        (("outcome", "status"), "fine", "$.outcome.status"),
        (("device", "kind"), "gpu", "$.device.kind"),
        (("final",), [], "$.final"),
        (("caveats",), ["no-such-caveat"], "$.caveats[0]"),
        (("protocol",), "freshly", "$.protocol"),
    ],
)
def test_a_wrong_type_is_foreign_and_the_field_is_named(
    path: tuple[Any, ...], value: object, field: str
) -> None:
    data = written()
    place: Any = data
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    with pytest.raises(ForeignRecord) as caught:
        read(data)
    assert f"`{field}`" in caught.value.found


@pytest.mark.parametrize("key", ["id", "outcome", "workload", "seed", "metrics", "group"])
def test_a_missing_key_is_named(key: str) -> None:
    data = written()
    del data[key]
    with pytest.raises(ForeignRecord, match=f"missing required field `{key}`"):
        read(data)


@pytest.mark.parametrize(
    "key", ["step_losses", "final", "memory", "caveats", "price_per_hour", "log"]
)
def test_what_has_a_default_may_be_missing(key: str) -> None:
    data = written(a_record(final=Final(), seconds=(1.0,)))
    del data[key]
    assert read(data) == a_record(final=Final(), seconds=(1.0,))


def test_a_newer_record_says_both_versions() -> None:
    with pytest.raises(NewerRecord) as caught:
        read({"schema_version": SCHEMA_VERSION + 1, "all": "else", "may": ["have", "changed"]})
    assert str(caught.value) == (
        f"r.json was written by a newer trainmark: expected schema version {SCHEMA_VERSION}, "
        f"found version {SCHEMA_VERSION + 1}. Update trainmark: pip install --upgrade trainmark"
    )


def test_keys_of_a_later_minor_version_are_ignored() -> None:
    data = written()
    data["new"] = {"deep": [1]}
    data["epochs"][0]["new"] = "nan"
    data["outcome"]["new"] = None
    assert read(data) == RECORD


KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def fits(schema: dict[str, Any], value: Any, definitions: dict[str, Any]) -> bool:
    """The part of JSON Schema that the record's schema uses."""
    if "$ref" in schema and not fits(
        definitions[schema["$ref"].removeprefix("#/$defs/")], value, definitions
    ):
        return False
    if "anyOf" in schema and not any(
        fits(choice, value, definitions) for choice in schema["anyOf"]
    ):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "type" in schema:
        boolean_as_number = isinstance(value, bool) and schema["type"] != "boolean"
        if boolean_as_number or not isinstance(value, KINDS[schema["type"]]):
            return False
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return set(schema.get("required", ())) <= set(value) and all(
            fits(properties[key], item, definitions)
            for key, item in value.items()
            if key in properties
        )
    if isinstance(value, list) and "items" in schema:
        return all(fits(schema["items"], item, definitions) for item in value)
    return True


def keywords(part: Any) -> set[str]:
    """Every keyword of a schema."""
    if isinstance(part, list):
        return set().union(*map(keywords, part)) if part else set()
    if not isinstance(part, dict):
        return set()
    found = set(part) - {"properties", "$defs", "default", "enum"}
    for key in ("properties", "$defs"):
        found |= set().union(*(keywords(item) for item in part.get(key, {}).values()))
    return found.union(*(keywords(part[key]) for key in ("items", "anyOf") if key in part))


def test_the_schema_uses_only_what_this_test_understands() -> None:
    assert keywords(codec.schema()) <= {
        *(
            "$schema",
            "$ref",
            "title",
            "description",
            "type",
            "required",
            "items",
            "anyOf",
            "additionalProperties",
        )
    }


@pytest.mark.parametrize(
    "record",
    [
        RECORD,
        a_record(
            step_losses=[1.0, math.nan, math.inf, -math.inf],
            final=Final(train_loss=math.nan),
            samples=Samples(0.1, [0.0], cpu_percent=[[None]], tree_cpu_percent=[None]),
        ),
    ],
)
def test_an_encoded_record_fits_the_schema(record: Record) -> None:
    schema = codec.schema()
    assert fits(schema, written(record), schema["$defs"])


@pytest.mark.parametrize(
    "change",
    [
        {"seed": "1"},
        {"step_losses": ["NaN"]},
        {"outcome": {"status": "fine"}},
        {"outcome": {}},
        {"caveats": ["no-such-caveat"]},
        {"threads": True},
    ],
)
def test_what_is_no_record_does_not_fit_the_schema(change: dict[str, Any]) -> None:
    schema = codec.schema()
    assert not fits(schema, written() | change, schema["$defs"])


@pytest.mark.parametrize("key", ["schema_version", "id", "outcome", "workload", "seed", "group"])
def test_the_schema_requires_what_the_reader_requires(key: str) -> None:
    schema = codec.schema()
    data = written()
    del data[key]
    assert not fits(schema, data, schema["$defs"])
