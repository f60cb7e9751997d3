"""Which reads of results are only reported, as the syntax tree of the script shows.

``print(loss.item())`` would learn the same with an old value; ``environment.step(action.item())``
would not. A value is only reported if every way that it takes is one of a few: it is put into a
text, a sum or a list, and these are printed or logged. All other uses count as computing with it.
"""

from __future__ import annotations

import ast
import itertools
import linecache
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from ..places import is_cell, line_of

_ARITHMETIC = {"float", "int", "str", "repr", "format", "round", "abs", "min", "max", "sum", "len"}
"""Built-in functions whose result is another form of what they are given."""
_MATHEMATICS = {
    "array", "asarray", "average", "exp", "fmean", "isfinite", "isnan", "log", "log10", "log2",
    "mean", "median", "round", "sqrt", "std", "sum",
}  # fmt: skip
"""The same, of modules."""
_MODULES = {"math", "np", "numpy", "statistics"}
_METHODS = {"cpu", "detach", "format", "item", "join", "mean", "numpy", "sum", "tolist"}
"""Methods of tensors, arrays and texts whose result is another form of them."""
_REPORTS = {
    "add_histogram", "add_scalar", "add_scalars", "log_metric", "log_metrics",
    "set_description", "set_description_str", "set_postfix", "set_postfix_str",
}  # fmt: skip
"""Methods that report, whatever their object is."""
_REPORTS_OF = {
    "accelerator": {"log", "print"},
    "fabric": {"log", "print"},
    "log": {"critical", "debug", "error", "info", "log", "warning"},
    "logger": {"critical", "debug", "error", "info", "log", "warning"},
    "logging": {"critical", "debug", "error", "info", "log", "warning"},
    "plt": {"plot", "scatter", "text", "title"},
    "run": {"log"},
    "stderr": {"write"},
    "stdout": {"write"},
    "tqdm": {"write"},
    "wandb": {"log"},
}
"""Methods that report, by the names of their objects."""
_CONTAINERS = {"dict", "list", "set", "deque", "OrderedDict", "Counter"}
_COLLECTS = {"append", "appendleft", "extend"}
"""Methods that put what they are given into a container."""
_INTO = (
    ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Dict, ast.FormattedValue, ast.JoinedStr,
    ast.ListComp, ast.GeneratorExp, ast.keyword,
)  # fmt: skip
"""Expressions that have the value in them."""
_SIMPLE = (
    ast.Name, ast.Constant, ast.JoinedStr, ast.FormattedValue, ast.expr_context, ast.Attribute,
)  # fmt: skip
"""What a report within a decision may show."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOKS_AROUND = {"eval", "exec", "globals", "locals", "vars"}
"""Functions by which a script reads names that its syntax tree does not show."""
_BUILT_IN = {"__float__": "float", "__int__": "int"}


class Reported:
    """Tells which reads of a script are only reported."""

    def __init__(self) -> None:
        self._files: dict[str, _File | None] = {}
        self._known: dict[tuple[CodeType, int, str], bool] = {}

    def is_only_reported(self, frame: FrameType, method: str) -> bool:
        """Whether what a frame reads now is only reported.

        Args:
            frame: it calls the method.
            method: the name of the method that reads, such as ``item``.
        """
        key = frame.f_code, frame.f_lasti, method
        if key not in self._known:
            try:
                self._known[key] = self._look_up(frame, method)
            # Syntax trees may be of any kind and depth, and the script must go on
            except Exception:  # noqa: BLE001
                self._known[key] = False
        return self._known[key]

    def _look_up(self, frame: FrameType, method: str) -> bool:
        name = frame.f_code.co_filename
        if is_cell(name):  # other cells may use whatever one assigns
            return False
        if name not in self._files:
            self._files[name] = _parsed(name, frame.f_globals.get("__name__") == "__main__")
        file = self._files[name]
        if file is None:
            return False
        reads = list(file.reads(frame, method))
        flow = _Flow(file)
        return bool(reads) and all(
            flow.is_only_reported(read) and not file.is_caught(read) for read in reads
        )


def _parsed(name: str, is_main: bool) -> _File | None:
    """Return the syntax tree of a file; None if it can't be had."""
    try:
        return _File(ast.parse("".join(linecache.getlines(name))), is_main)
    except (SyntaxError, ValueError, RecursionError):
        return None


class _File:
    """The syntax tree of a file, with the parent of each node.

    Args:
        tree: the syntax tree.
        is_main: whether it is the script itself, whose names no other file can use.
    """

    def __init__(self, tree: ast.Module, is_main: bool) -> None:
        self.tree = tree
        self.is_main = is_main
        self.parents: dict[ast.AST, ast.AST] = {}
        self.calls: dict[str, list[ast.Call]] = {}
        self.defined: set[str] = set()
        self.given: set[str] = set()
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
            if isinstance(node, ast.Call):
                self.calls.setdefault(_name_of(node.func), []).append(node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.defined.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.defined.add(node.id)
            elif isinstance(node, ast.arg):
                self.given.add(node.arg)
            elif isinstance(node, ast.alias):
                self.given.add(node.asname or node.name)
        plain = (call.func for calls in self.calls.values() for call in calls)
        called = {function.id for function in plain if isinstance(function, ast.Name)}
        self.looks_around = not _LOOKS_AROUND.isdisjoint(called)

    def reads(self, frame: FrameType, method: str) -> Iterator[ast.Call]:
        """Yield the calls of a method that a frame may execute now."""
        word = _BUILT_IN.get(method, method)
        line, last_line, column, last_column = _position(frame)
        for call in self.calls.get(word, ()):
            is_method = isinstance(call.func, ast.Attribute)
            if is_method == (method in _BUILT_IN):
                continue
            if column is None:
                if call.lineno <= line <= (call.end_lineno or call.lineno):
                    yield call
            elif (call.lineno, call.end_lineno) == (line, last_line) and (
                call.col_offset,
                call.end_col_offset,
            ) == (column, last_column):
                yield call

    def is_original(self, name: str) -> bool:
        """Whether a name is that of a built-in function, as far as the file shows."""
        return name not in self.defined and name not in self.given

    def is_caught(self, node: ast.AST) -> bool:
        """Whether an error at a node would be handled; a value decides whether there is one."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.Try):
                caught = [_name_of(each.type) if each.type else "" for each in node.handlers]
                if any(name != "KeyboardInterrupt" for name in caught):
                    return True
        return False

    def scope_of(self, node: ast.AST) -> ast.AST:
        """Return the function or class that a node belongs to, or else the module."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                return node
        return self.tree

    def names(self, name: str, scope: ast.AST) -> list[ast.Name]:
        """Return where a name is used in a function, a class or the module."""
        return [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == name]

    def scope_of_name(self, name: str, node: ast.AST) -> ast.AST | None:
        """Return the scope of a name that is used at a node; None if others may use it."""
        scope = self.scope_of(node)
        for each in ast.walk(scope):
            if isinstance(each, (ast.Global, ast.Nonlocal)) and name in each.names:
                scope = self.tree
        if isinstance(scope, ast.ClassDef) or self.looks_around:
            return None
        return scope if scope is not self.tree or self.is_main else None


class _Flow:
    """Follows a value through a file.

    A node or a name that is met again is taken for reported: whether it is has been asked already,
    and everything must be.
    """

    def __init__(self, file: _File) -> None:
        self._file = file
        self._met: set[Any] = set()

    def is_only_reported(self, node: ast.AST) -> bool:
        """Whether the value of an expression is only reported."""
        if node in self._met:
            return True
        self._met.add(node)
        parent = self._file.parents[node]
        if isinstance(parent, ast.Expr):
            return True
        if isinstance(parent, _INTO):
            return not _repeats(parent) and self.is_only_reported(parent)
        if isinstance(parent, ast.Call):
            return self._call_only_reports(parent, node)
        if isinstance(parent, ast.Attribute):
            return self._method_only_reports(parent)
        if isinstance(parent, ast.Subscript):
            is_part = node is parent.value and isinstance(parent.ctx, ast.Load)
            return is_part and self.is_only_reported(parent)
        if isinstance(parent, ast.comprehension):
            is_plain = node is parent.iter and not parent.ifs and not parent.is_async
            # Its names are its own.
            whole = self._file.parents[parent]
            calls = [each for each in ast.walk(whole) if isinstance(each, ast.Call)]
            has_no_effect = all(map(self._has_no_effect, calls))
            is_reported = is_plain and has_no_effect and self.is_only_reported(whole)
            return is_reported and self._is_only_reported_as(parent.target, whole)
        if isinstance(parent, ast.Assign):
            return all(self._is_only_reported_as(target) for target in parent.targets)
        if isinstance(parent, ast.AugAssign):
            return self._container_is_only_reported(parent.target)
        if isinstance(parent, ast.Compare):
            choice = self._file.parents[parent]
            others = [each for each in (parent.left, *parent.comparators) if each is not node]
            if len(others) != 1 or not isinstance(others[0], (ast.Name, ast.Constant)):
                return False
            return isinstance(choice, ast.If) and self._branches_only_report(choice)
        if isinstance(parent, ast.Return):
            return self._result_is_only_reported(parent)
        return False

    def _call_only_reports(self, call: ast.Call, node: ast.AST) -> bool:
        """Whether a call that is given a value reports it, or returns another form of it."""
        if node is call.func:
            return False
        if self._is_report(call):
            return isinstance(self._file.parents[call], ast.Expr)
        function = call.func
        if isinstance(function, ast.Name):
            known = function.id in _ARITHMETIC and self._file.is_original(function.id)
            return known and not call.keywords and self.is_only_reported(call)
        if not isinstance(function, ast.Attribute):
            return False
        base = function.value
        if function.attr in _COLLECTS and isinstance(self._file.parents[call], ast.Expr):
            return self._container_is_only_reported(base)
        is_module = isinstance(base, ast.Name) and base.id in _MODULES
        is_text = isinstance(base, ast.Constant) and function.attr in ("format", "join")
        known = (is_module and function.attr in _MATHEMATICS) or is_text
        return known and self.is_only_reported(call)

    def _method_only_reports(self, method: ast.Attribute) -> bool:
        """Whether a method of the value puts something into it, or returns another form of it."""
        call = self._file.parents[method]
        if not isinstance(call, ast.Call) or call.func is not method:
            return False
        if method.attr in (*_COLLECTS, "clear"):
            return isinstance(self._file.parents[call], ast.Expr)
        return method.attr in _METHODS and self.is_only_reported(call)

    def _is_only_reported_as(self, target: ast.AST, scope: ast.AST | None = None) -> bool:
        """Whether what is assigned to a target is only reported.

        Args:
            target: the target.
            scope: where its names are used, if that is not a function or the module.
        """
        if isinstance(target, (ast.Tuple, ast.List)):
            return all(self._is_only_reported_as(each, scope) for each in target.elts)
        if isinstance(target, ast.Subscript):
            return self._container_is_only_reported(target.value)
        if not isinstance(target, ast.Name):
            return False
        if scope is None:
            scope = self._file.scope_of_name(target.id, target)
        if scope is None:
            return False
        key = target.id, scope
        if key in self._met:
            return True
        self._met.add(key)
        return all(
            self.is_only_reported(each) or self._is_target(each)
            for each in self._file.names(target.id, scope)
            if isinstance(each.ctx, ast.Load)
        )

    def _is_target(self, name: ast.Name) -> bool:
        """Whether a name is that of a container which something is assigned into."""
        parent = self._file.parents[name]
        if not isinstance(parent, ast.Subscript) or not isinstance(parent.ctx, ast.Store):
            return False
        return name is parent.value

    def _container_is_only_reported(self, container: ast.AST) -> bool:
        """Whether a container or a sum was made here, and is only reported.

        One that comes from elsewhere, as a group of an optimiser does, is used elsewhere, too.
        """
        if not isinstance(container, ast.Name):
            return False
        scope = self._file.scope_of_name(container.id, container)
        if scope is None or container.id in self._file.given:
            return False
        stores = [
            each
            for each in self._file.names(container.id, scope)
            if isinstance(each.ctx, ast.Store)
        ]
        begun = [
            store
            for store in stores
            if not isinstance(self._file.parents[store], ast.AugAssign)  # that adds to it
        ]
        return (
            bool(begun)
            and all(self._begins_empty(store) for store in begun)
            and self._is_only_reported_as(container)
        )

    def _begins_empty(self, store: ast.Name) -> bool:
        """Whether a number or an empty container is assigned."""
        statement = self._file.parents[store]
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            return False
        if isinstance(statement, ast.Assign) and len(statement.targets) > 1:
            return False
        value = statement.value
        if isinstance(value, ast.Call):
            name = _name_of(value.func)
            if name in self._file.defined or (
                isinstance(value.func, ast.Attribute)
                and _name_of(value.func.value) != "collections"
            ):
                return False
            is_container = name in _CONTAINERS and not value.args
            is_number = name == "float" and all(map(_is_constant, value.args))
            return is_container or is_number
        if isinstance(value, (ast.List, ast.Set)):
            return not value.elts
        if isinstance(value, ast.Dict):
            return not value.keys
        return _is_constant(value)

    def _branches_only_report(self, choice: ast.If) -> bool:
        """Whether all that a decision decides is a report, or a value that is only reported."""
        return all(
            self._statement_only_reports(statement)
            for statement in itertools.chain(choice.body, choice.orelse)
        )

    def _statement_only_reports(self, statement: ast.stmt) -> bool:
        """Whether a statement prints names and texts, or gives one name the value of another."""
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            shown = [*call.args, *(keyword.value for keyword in call.keywords)]
            parts = itertools.chain.from_iterable(map(ast.walk, shown))
            return self._is_report(call) and all(isinstance(part, _SIMPLE) for part in parts)
        if isinstance(statement, ast.Assign):
            is_simple = isinstance(statement.value, (ast.Name, ast.Constant))
            return is_simple and all(map(self._is_only_reported_as, statement.targets))
        return False

    def _has_no_effect(self, call: ast.Call) -> bool:
        name = _name_of(call.func)
        if isinstance(call.func, ast.Name):
            return name in _ARITHMETIC and self._file.is_original(name) and not call.keywords
        return name in _METHODS

    def _is_report(self, call: ast.Call) -> bool:
        """Whether a function prints, logs or draws what it is given."""
        function = call.func
        if any(keyword.arg in (None, "file") for keyword in call.keywords):
            return False  # it may go to another program
        if isinstance(function, ast.Name):
            return function.id == "print" and self._file.is_original("print")
        if not isinstance(function, ast.Attribute) or function.attr in self._file.defined:
            return False
        of = _name_of(function.value)
        return function.attr in _REPORTS or function.attr in _REPORTS_OF.get(of, ())

    def _result_is_only_reported(self, statement: ast.Return) -> bool:
        """Whether all that call the function of a ``return`` only report the result."""
        function = self._file.scope_of(statement)
        if (
            not isinstance(function, ast.FunctionDef)
            or function.decorator_list
            or self._file.scope_of_name(function.name, function) is not self._file.tree
        ):
            return False
        calls = self._file.calls.get(function.name, [])
        used = self._file.names(function.name, self._file.tree)
        # A function that is handed over may be called anywhere.
        if len(used) != len(calls) or not all(isinstance(call.func, ast.Name) for call in calls):
            return False
        return bool(calls) and all(self.is_only_reported(call) for call in calls)


def _is_constant(value: ast.AST) -> bool:
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    return isinstance(value, ast.Constant)


def _repeats(expression: ast.AST) -> bool:
    """Whether a list is repeated, as in ``[0] * n``: its length would depend on the value."""
    if not isinstance(expression, ast.BinOp) or not isinstance(expression.op, ast.Mult):
        return False
    parts = (expression.left, expression.right)
    return any(isinstance(each, (ast.List, ast.Tuple, ast.ListComp)) for each in parts)


def _name_of(function: ast.AST) -> str:
    """Return the name of a function or an object, without what it belongs to."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _position(frame: FrameType) -> tuple[Any, Any, Any, Any]:
    """Return first and last line, first and last column of what a frame executes.

    Columns are None before Python 3.11.
    """
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return line_of(frame), None, None, None
    line, last_line, column, last_column = next(
        itertools.islice(positions(), frame.f_lasti // 2, None)
    )
    return line or line_of(frame), last_line, column, last_column
