from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from trainmark.workload.decode import Misfit, decode, dotted, require


@dataclass(frozen=True)
class Circle:
    radius: float
    kind: Literal["circle"] = "circle"

    def __post_init__(self) -> None:
        require(self.radius > 0, "radius", "a number above 0", self.radius)


@dataclass(frozen=True)
class Square:
    side: int
    kind: Literal["square"] = "square"


@dataclass(frozen=True)
class Corner:
    x: int
    y: int


@dataclass(frozen=True)
class Point:
    at: tuple[int, int] = field(metadata={"places": "[left, right]"})


@dataclass(frozen=True)
class Drawing:
    name: str
    shapes: tuple[Circle | Square, ...] = ()
    visible: bool = True
    pages: int = 1
    scale: float = 1.0
    colour: Literal["red", "blue"] = "red"
    corner: tuple[int, int] = (0, 0)
    origin: Corner | None = None
    limit: int | None = None
    size: int | Literal["full"] = "full"
    tags: tuple[str, ...] = field(default_factory=tuple)


EVERYTHING: dict[str, Any] = {
    "name": "d",
    "shapes": [{"kind": "circle", "radius": 2}, {"kind": "square", "side": 3}],
    "visible": False,
    "pages": 7,
    "scale": 2,
    "colour": "blue",
    "corner": [1, 2],
    "origin": {"x": 1, "y": 2},
    "limit": None,
    "size": 5,
    "tags": ["a", "b"],
}


def test_every_type_is_read() -> None:
    assert decode(Drawing, EVERYTHING) == Drawing(
        "d",
        (Circle(2.0), Square(3)),
        False,
        7,
        2.0,
        "blue",
        (1, 2),
        Corner(1, 2),
        None,
        5,
        ("a", "b"),
    )


def test_a_whole_number_becomes_a_float_where_a_float_is_meant() -> None:
    scale = decode(Drawing, EVERYTHING).scale
    assert scale == 2.0
    assert type(scale) is float


def test_what_may_be_left_out_has_its_default() -> None:
    assert decode(Drawing, {"name": "d"}) == Drawing("d")


@pytest.mark.parametrize(
    ("change", "path", "expected", "found"),
    [
        ({"name": 3}, "name", "a string", "3"),
        ({"visible": 1}, "visible", "true or false", "1"),
        ({"visible": "yes"}, "visible", "true or false", "'yes'"),
        ({"pages": True}, "pages", "a whole number", "True"),
        ({"pages": 1.0}, "pages", "a whole number", "1.0"),
        ({"pages": "1"}, "pages", "a whole number", "'1'"),
        ({"pages": None}, "pages", "a whole number", "nothing"),
        ({"scale": True}, "scale", "a number", "True"),
        ({"scale": "big"}, "scale", "a number", "'big'"),
        ({"colour": "green"}, "colour", "'red' or 'blue'", "'green'"),
        ({"colour": ["red"]}, "colour", "'red' or 'blue'", "a list"),
        ({"corner": 1}, "corner", "a list", "1"),
        ({"corner": [1]}, "corner", "a list of 2", "a list of 1"),
        ({"corner": [1, "2"]}, "corner[1]", "a whole number", "'2'"),
        ({"tags": ["a", 2]}, "tags[1]", "a string", "2"),
        ({"tags": "ab"}, "tags", "a list", "'ab'"),
        ({"limit": "1"}, "limit", "a whole number", "'1'"),
        ({"limit": False}, "limit", "a whole number", "False"),
        ({"size": "half"}, "size", "a whole number or 'full'", "'half'"),
        ({"size": True}, "size", "a whole number or 'full'", "True"),
        ({"origin": 3}, "origin", "a table", "3"),
        ({"origin": {"x": 1, "y": "b"}}, "origin.y", "a whole number", "'b'"),
        ({"shapes": ["circle"]}, "shapes[0]", "a table with a key 'kind'", "'circle'"),
        ({"shapes": [{"kind": "circle", "radius": "b"}]}, "shapes[0].radius", "a number", "'b'"),
        (
            {"shapes": [{"kind": "square", "side": 1}, {"kind": "circle"}]},
            "shapes[1]",
            "the key 'radius'",
            "no such key",
        ),
        (
            {"shapes": [{"kind": "circle", "radius": 0}]},
            "shapes[0].radius",
            "a number above 0",
            "0.0",
        ),
        (
            {"name": "n" * 100, "pages": "p" * 100},
            "pages",
            "a whole number",
            "'" + "p" * 56 + "...",
        ),
    ],
)
def test_a_wrong_value_is_answered_with_path_expected_and_found(
    change: dict[str, Any], path: str, expected: str, found: str
) -> None:
    with pytest.raises(Misfit) as caught:
        decode(Drawing, EVERYTHING | change)
    assert (dotted(caught.value.path), caught.value.expected, caught.value.found) == (
        path,
        expected,
        found,
    )
    assert str(caught.value) == f"{path}: expected {expected}, found {found}"


def test_an_unknown_key_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(Misfit) as caught:
        decode(Corner, {"x": 1, "yy": 2}, ("model", 2))
    assert dotted(caught.value.path) == "model[2].yy"
    assert caught.value.expected == "one of x, y (did you mean y?)"
    assert caught.value.found == "the key 'yy'"


def test_an_unknown_key_without_a_similar_name_lists_all_names() -> None:
    with pytest.raises(Misfit) as caught:
        decode(Corner, {"weather": 1})
    assert caught.value.expected == "one of x, y"


@pytest.mark.parametrize(
    ("data", "found"), [({"fill": True}, "no such keys"), ({}, "an empty table")]
)
def test_all_that_is_missing_is_named_at_once(data: dict[str, Any], found: str) -> None:
    @dataclass(frozen=True)
    class Line:
        start: int
        middle: int
        end: int
        fill: bool = False

    with pytest.raises(Misfit) as caught:
        decode(Line, data)
    assert (caught.value.expected, caught.value.found) == (
        "the keys 'start', 'middle' and 'end'",
        found,
    )


@pytest.mark.parametrize(("data", "path"), [([1], ("at",)), (3, ("at",))])
def test_a_list_whose_places_have_names_is_asked_for_by_them(
    data: object, path: tuple[str]
) -> None:
    with pytest.raises(Misfit) as caught:
        decode(Point, {"at": data})
    assert (caught.value.path, caught.value.expected) == (path, "[left, right]")


def test_a_wrong_place_of_such_a_list_is_pointed_at() -> None:
    with pytest.raises(Misfit) as caught:
        decode(Point, {"at": [1, "x"]})
    assert (caught.value.path, caught.value.expected) == (("at", 1), "a whole number")


@pytest.mark.parametrize(("data", "found"), [({"y": 1}, "no such key")])
def test_a_missing_key_is_named(data: dict[str, int], found: str) -> None:
    with pytest.raises(Misfit) as caught:
        decode(Corner, data, ("origin",))
    assert caught.value.path == ("origin",)
    assert (caught.value.expected, caught.value.found) == ("the key 'x'", found)


@pytest.mark.parametrize(
    ("shape", "expected", "found"),
    [
        (
            {"kind": "circel", "radius": 1},
            "one of circle, square (did you mean circle?)",
            "'circel'",
        ),
        ({"radius": 1}, "one of circle, square", "nothing"),
        ({"kind": 3}, "one of circle, square", "3"),
        ({"kind": ["circle"]}, "one of circle, square", "a list"),
        ({"kind": {"circle": 1}}, "one of circle, square", "a table"),
    ],
)
def test_an_unknown_kind_is_answered_with_the_kinds_there_are(
    shape: dict[str, Any], expected: str, found: str
) -> None:
    with pytest.raises(Misfit) as caught:
        decode(Drawing, {"name": "d", "shapes": [shape]})
    assert dotted(caught.value.path) == "shapes[0].kind"
    assert caught.value.expected.startswith(expected)
    assert caught.value.found == found


@pytest.mark.parametrize("data", [None, 3, "text", [1]])
def test_something_that_is_no_table_is_refused(data: object) -> None:
    with pytest.raises(Misfit, match="expected a table"):
        decode(Drawing, data)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("model",), "model"),
        (("model", 2, "units"), "model[2].units"),
        (("a", "b", 0), "a.b[0]"),
    ],
)
def test_dotted(path: tuple[str | int, ...], text: str) -> None:
    assert dotted(path) == text
