"""Edits of a file of Python that leave everything else as it is.

Each takes the source, and returns it with the edit; None if it does not find what to edit, or more
than one place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import libcst as cst
from libcst import matchers
from libcst.metadata import (
    CodeRange,
    MetadataWrapper,
    PositionProvider,
    QualifiedNameProvider,
    QualifiedNameSource,
)


class Where(NamedTuple):
    """Where a node is.

    Args:
        lines: its lines.
        names_of: returns the full names that an expression may have, from the imports.
    """

    lines: CodeRange
    names_of: Callable[[cst.CSTNode], set[str]]

    def has(self, line: int) -> bool:
        """Whether a line is one of those of the node."""
        return self.lines.start.line <= line <= self.lines.end.line


Matches = Callable[[cst.CSTNode, Where], bool]


def set_arguments(
    source: str, line: int, functions: Collection[str], arguments: Mapping[str, str | None]
) -> str | None:
    """Set keyword arguments of a call on a line.

    Args:
        source: the file.
        line: a line of the call.
        functions: full names of the function; one that begins with a dot is that of a method.
        arguments: expressions by name; None removes an argument.
    """

    def is_call(node: cst.CSTNode, where: Where) -> bool:
        return where.has(line) and _calls(node, functions, where)

    def edited(call: cst.CSTNode) -> cst.CSTNode | None:
        assert isinstance(call, cst.Call)
        if any(each.star for each in call.args):
            return None  # they may be given twice
        return _with_arguments(call, arguments)

    return _edited_once(source, is_call, edited)


def set_first_argument(
    source: str, functions: Collection[str], value: str, line: int | None = None
) -> str | None:
    """Set the first argument of every call of a function, or of the one on a line."""

    def is_call(node: cst.CSTNode, where: Where) -> bool:
        return (line is None or where.has(line)) and _calls(node, functions, where)

    def edited(call: cst.CSTNode) -> cst.CSTNode | None:
        assert isinstance(call, cst.Call)
        if not call.args or call.args[0].star or call.args[0].keyword is not None:
            return None
        first = call.args[0].with_changes(value=cst.parse_expression(value))
        return call.with_changes(args=[first, *call.args[1:]])

    return _edited(source, is_call, edited)


def replace_calls(
    source: str,
    functions: Collection[str],
    by: Callable[[cst.Call], cst.BaseExpression | None],
    lines_of: Collection[int] = (),
) -> str | None:
    """Replace the calls of a function, or those on some lines.

    Args:
        source: the file.
        functions: full names of the function; one that begins with a dot is that of a method.
        by: returns what replaces a call; None if it can't be replaced.
        lines_of: the lines; all if empty.
    """

    def is_call(node: cst.CSTNode, where: Where) -> bool:
        is_there = not lines_of or any(map(where.has, lines_of))
        return is_there and _calls(node, functions, where)

    def edited(call: cst.CSTNode) -> cst.CSTNode | None:
        assert isinstance(call, cst.Call)
        return by(call)

    return _edited(source, is_call, edited)


def remove_call(source: str, line: int, functions: Collection[str]) -> str | None:
    """Remove a statement on a line that only calls a function."""

    def is_statement(node: cst.CSTNode, where: Where) -> bool:
        if not isinstance(node, cst.SimpleStatementLine) or where.lines.start.line != line:
            return False
        (first, *others) = node.body
        return isinstance(first, cst.Expr) and not others and _calls(first.value, functions, where)

    def edited(_: cst.CSTNode) -> cst.CSTNode | cst.RemovalSentinel:
        return cst.RemoveFromParent()

    return _edited_once(source, is_statement, edited)


def insert_after_import(source: str, module: str, text: str) -> str | None:
    """Insert a statement after the first import of a module at the top level."""
    tree = cst.parse_module(source)
    for at, statement in enumerate(tree.body):
        if isinstance(statement, cst.SimpleStatementLine) and any(
            _imports(each, module) for each in statement.body
        ):
            body = [*tree.body]
            body.insert(at + 1, cst.parse_statement(f"{text}\n"))
            return tree.with_changes(body=body).code
    return None


def insert_after_assignment(source: str, line: int, text: str) -> str | None:
    """Insert a statement after an assignment to a single name on a line.

    Args:
        source: the file.
        line: a line of the assignment.
        text: the statement, with ``{name}`` for the name.
    """

    def is_assignment(node: cst.CSTNode, where: Where) -> bool:
        if not isinstance(node, cst.SimpleStatementLine):
            return False
        return where.has(line) and _assigned(node) != ""

    def edited(statement: cst.CSTNode) -> cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]:
        assert isinstance(statement, cst.SimpleStatementLine)
        more = cst.parse_statement(text.format(name=_assigned(statement)) + "\n")
        return cst.FlattenSentinel([statement, more])

    return _edited_once(source, is_assignment, edited)


def wrap(source: str, line: int, header: str) -> str | None:
    """Put the simple statement on a line into a ``with`` block; not one that yields."""

    def is_statement(node: cst.CSTNode, where: Where) -> bool:
        return isinstance(node, cst.SimpleStatementLine) and where.has(line)

    def edited(statement: cst.CSTNode) -> cst.CSTNode | None:
        return None if matchers.findall(statement, matchers.Yield()) else _with(header, statement)

    return _edited_once(source, is_statement, edited)


def wrap_loop(source: str, line: int, header: str, without: Collection[int] = ()) -> str | None:
    """Put the innermost ``for`` loop around a line into a ``with`` block.

    Args:
        source: the file.
        line: the line.
        header: what follows ``with``.
        without: lines that may not be in the loop, such as those of the training.
    """
    loops: list[Where] = []

    def note(node: cst.CSTNode, where: Where) -> bool:
        if isinstance(node, cst.For) and where.has(line):
            loops.append(where)
        return False

    _edited(source, note, lambda node: node)
    if not loops:
        return None
    innermost = max(loops, key=lambda where: where.lines.start.line)
    if any(map(innermost.has, without)):
        return None

    def is_innermost(node: cst.CSTNode, where: Where) -> bool:
        return isinstance(node, cst.For) and where.lines == innermost.lines

    return _edited_once(source, is_innermost, lambda loop: _with(header, loop))


def arguments_of(call: cst.Call, left_out: Collection[str]) -> list[cst.Arg]:
    """Return the arguments of a call without some keywords."""
    return [
        each for each in call.args if each.keyword is None or each.keyword.value not in left_out
    ]


def _with(header: str, statement: cst.CSTNode) -> cst.With:
    block = cst.parse_statement(f"with {header}:\n    pass\n")
    assert isinstance(block, cst.With)
    assert isinstance(statement, (cst.SimpleStatementLine, cst.For))
    leading = statement.leading_lines
    inner = statement.with_changes(leading_lines=[])
    return block.with_changes(body=cst.IndentedBlock([inner]), leading_lines=leading)


def _with_arguments(call: cst.Call, arguments: Mapping[str, str | None]) -> cst.Call:
    """Return a call with other keyword arguments."""
    kept: list[cst.Arg] = []
    known: set[str] = set()
    for each in call.args:
        name = each.keyword.value if each.keyword is not None else ""
        if name not in arguments:
            kept.append(each)
            continue
        known.add(name)
        value = arguments[name]
        if value is not None:
            kept.append(each.with_changes(value=cst.parse_expression(value)))
    for name, value in arguments.items():
        if name not in known and value is not None:
            kept.append(_argument(name, value))
    has_last_comma = bool(call.args) and isinstance(call.args[-1].comma, cst.Comma)
    return call.with_changes(args=_separated(kept, has_last_comma=has_last_comma))


def _argument(name: str, value: str) -> cst.Arg:
    plain = cst.SimpleWhitespace("")
    return cst.Arg(
        cst.parse_expression(value),
        cst.Name(name),
        equal=cst.AssignEqual(whitespace_before=plain, whitespace_after=plain),
    )


def _separated(arguments: list[cst.Arg], *, has_last_comma: bool) -> list[cst.Arg]:
    """Return arguments with commas between them; those that were there keep their layout."""
    if not arguments:
        return []
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    separated = [
        each if isinstance(each.comma, cst.Comma) else each.with_changes(comma=comma)
        for each in arguments[:-1]
    ]
    last = arguments[-1]
    if not has_last_comma:
        last = last.with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return [*separated, last]


def _edited_once(source: str, matches: Matches, edit: Callable[[cst.CSTNode], Any]) -> str | None:
    """Return the source with one node edited; None unless exactly one matches."""
    found: list[cst.CSTNode] = []

    def counted(node: cst.CSTNode) -> Any:
        found.append(node)
        return edit(node)

    changed = _edited(source, matches, counted)
    return changed if len(found) == 1 else None


def _edited(source: str, matches: Matches, edit: Callable[[cst.CSTNode], Any]) -> str | None:
    """Return the source with the outermost matching nodes edited; None if nothing changes."""
    try:
        wrapper = MetadataWrapper(cst.parse_module(source))
    except cst.ParserSyntaxError:
        return None
    editor = _Editor(matches, edit)
    changed = wrapper.visit(editor).code
    return None if editor.has_failed or changed == source else changed


class _Editor(cst.CSTTransformer):
    """Edits the outermost nodes that match."""

    METADATA_DEPENDENCIES = (PositionProvider, QualifiedNameProvider)

    def __init__(self, matches: Matches, edit: Callable[[cst.CSTNode], Any]) -> None:
        super().__init__()
        self._matches = matches
        self._edit = edit
        self._matched: list[cst.CSTNode] = []
        self.has_failed = False

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Do not look into a node that is edited."""
        lines = self.get_metadata(PositionProvider, node, None)
        if isinstance(lines, CodeRange) and self._matches(node, Where(lines, self._names_of)):
            self._matched.append(node)
            return False
        return True

    def _names_of(self, node: cst.CSTNode) -> set[str]:
        found = self.get_metadata(QualifiedNameProvider, node, set())
        return {each.name for each in found if each.source is QualifiedNameSource.IMPORT}

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Any:
        """Edit a node."""
        if not self._matched or self._matched[-1] is not original_node:
            return updated_node
        self._matched.pop()
        edited = self._edit(updated_node)
        if edited is None:
            self.has_failed = True
            return updated_node
        return edited


def _calls(node: cst.CSTNode, functions: Collection[str], where: Where) -> bool:
    """Whether a node calls one of some functions."""
    if not isinstance(node, cst.Call):
        return False
    if not where.names_of(node.func).isdisjoint(functions):
        return True
    is_method = isinstance(node.func, cst.Attribute)
    return is_method and f".{cst.ensure_type(node.func, cst.Attribute).attr.value}" in functions


def _imports(statement: cst.BaseSmallStatement, module: str) -> bool:
    if not isinstance(statement, cst.Import):
        return False
    return any(each.evaluated_name == module and each.asname is None for each in statement.names)


def _assigned(statement: cst.SimpleStatementLine) -> str:
    """Return the name that a statement assigns to; empty if it is not a single one."""
    if len(statement.body) != 1:
        return ""
    (inner,) = statement.body
    if not isinstance(inner, cst.Assign) or len(inner.targets) != 1:
        return ""
    target = inner.targets[0].target
    return target.value if isinstance(target, cst.Name) else ""
