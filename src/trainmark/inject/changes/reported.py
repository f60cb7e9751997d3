"""Which reads of results are only reported, as the syntax tree of the script shows.

``print(loss.item())`` would learn the same with an old value; ``environment.step(action.item())``
would not. A value is only reported if all that it reaches is printed, logged, collected, saved, or
decides whether something is saved or the training stops. If that can't be seen, it is not.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import re
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from ..places import is_cell

_REPORTS = {
    "print", "pprint", "debug", "info", "warning", "error", "critical", "log", "log_dict",
    "log_metric", "log_metrics", "log_scalar", "add_scalar", "add_scalars", "add_histogram",
    "set_postfix", "set_postfix_str", "set_description", "set_description_str", "write",
    "writelines", "writerow", "plot", "scatter", "title", "text", "suptitle", "save", "savez",
    "savetxt", "dump", "save_file", "save_pretrained",
}  # fmt: skip
"""Names of functions that print, log, draw or save what they are given."""
_REPORTS_BY_PREFIX = ("print_", "plot_", "save_", "report_", "write_")
_COLLECTS = {"append", "appendleft", "extend", "add", "insert", "update", "setdefault"}
"""Names of methods that keep what they are given; what reads it later counts."""
_CONTAINERS = {
    "list", "dict", "set", "defaultdict", "deque", "OrderedDict", "Counter", "zeros", "empty",
    "full",
}  # fmt: skip
"""Names of functions that make an empty container."""
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_PASSES_ON = {
    "float", "int", "str", "repr", "format", "round", "abs", "min", "max", "sum", "len", "list",
    "tuple", "dict", "sorted", "zip", "mean", "average", "median", "std", "sqrt", "exp", "isnan",
    "isinf", "isfinite", "array", "asarray", "join", "item", "tolist", "items", "values", "get",
    "copy", "ljust", "rjust", "compute", "numpy", "cpu", "detach",
}  # fmt: skip
"""Names of functions whose result is another form of what they are given."""
_COMPUTE = {"math", "np", "numpy"}
"""Modules whose ``log`` is the logarithm."""
_ON_THE_WAY = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Tuple, ast.List, ast.Set, ast.Dict,
    ast.Starred, ast.keyword, ast.FormattedValue, ast.JoinedStr, ast.ListComp, ast.SetComp,
    ast.GeneratorExp, ast.DictComp,
)  # fmt: skip
"""Expressions that have the value in them."""
_STOPS = (ast.Break, ast.Raise, ast.Return, ast.Pass)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BUILT_IN = {"__float__": "float", "__int__": "int"}


class Reported:
    """Tells which reads of a script are only reported.

    Args:
        is_users: whether a file, by its name, is the user's.
    """

    def __init__(self, is_users: Callable[[str], bool]) -> None:
        self._is_users = is_users
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
            self._known[key] = self._look_up(frame, method)
        return self._known[key]

    def _look_up(self, frame: FrameType, method: str) -> bool:
        name = frame.f_code.co_filename
        file = self._file(name)
        if file is None or is_cell(name):  # other cells may read whatever one assigns
            return False
        reads = list(file.reads(frame, method))
        flow = _Flow(file, "\n".join(self._other_texts(name)))
        return bool(reads) and all(flow.is_only_reported(read) for read in reads)

    def _other_texts(self, name: str) -> Iterator[str]:
        """Yield the texts of the user's other files that were imported."""
        own = linecache.getlines(name)
        for module in list(sys.modules.values()):
            other = getattr(module, "__file__", None)
            if isinstance(other, str) and self._is_users(other):
                lines = linecache.getlines(other)
                if lines != own:  # the same file may have two names
                    yield "".join(lines)

    def _file(self, name: str) -> _File | None:
        if name not in self._files:
            try:
                self._files[name] = _File(ast.parse("".join(linecache.getlines(name))))
            except (SyntaxError, ValueError, RecursionError):
                self._files[name] = None
        return self._files[name]


class _File:
    """The syntax tree of a file, with the parent of each node."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        self.functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        self.calls: dict[str, list[ast.Call]] = {}
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Call):
                self.calls.setdefault(_name_of(node.func), []).append(node)

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

    def scope_of(self, node: ast.AST) -> ast.AST:
        """Return the function that a node belongs to, or else the module."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, _FUNCTIONS):
                return node
        return self.tree

    def loads(self, name: str, node: ast.AST) -> Iterator[ast.expr]:
        """Yield where a name is read that is assigned at a node."""
        return self._names(name, node, ast.Load)

    def stores(self, name: str, node: ast.AST) -> Iterator[ast.expr]:
        """Yield where a name is assigned that is used at a node."""
        return self._names(name, node, ast.Store)

    def attributes(self, name: str, kind: type[ast.expr_context]) -> Iterator[ast.expr]:
        """Yield where an attribute of any object is read, or is assigned."""
        for each in ast.walk(self.tree):
            if isinstance(each, ast.Attribute) and each.attr == name and isinstance(each.ctx, kind):
                yield each

    def _names(self, name: str, node: ast.AST, kind: type[ast.expr_context]) -> Iterator[ast.expr]:
        scope = self.scope_of(node)
        for each in ast.walk(scope):
            if isinstance(each, (ast.Global, ast.Nonlocal)) and name in each.names:
                scope = self.tree
        for each in ast.walk(scope):
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, kind):
                yield each


class _Flow:
    """Follows a value through a file.

    Args:
        file: the file.
        others: the text of other files, which may read attributes and call functions of this one.
    """

    def __init__(self, file: _File, others: str) -> None:
        self._file = file
        self._others = others
        self._followed: set[Any] = set()

    def is_only_reported(self, node: ast.AST) -> bool:
        """Whether the value of an expression is only reported."""
        if node in self._followed:
            return True
        self._followed.add(node)
        parent = self._file.parents[node]
        if isinstance(parent, _ON_THE_WAY):
            return self.is_only_reported(parent)
        if isinstance(parent, (ast.comprehension, ast.For)):
            return node is parent.iter and self._collects(parent.target)
        if isinstance(parent, (ast.Expr, ast.Assert)):
            return True
        if isinstance(parent, ast.IfExp):
            return node is not parent.test and self.is_only_reported(parent)
        if isinstance(parent, ast.Call):
            return self._is_reported_by(parent, node)
        if isinstance(parent, ast.Attribute):
            return self.is_only_reported(parent)
        if isinstance(parent, ast.Subscript):
            return node is parent.value and self.is_only_reported(parent)
        if isinstance(parent, ast.Assign):
            return all(self._collects(target) for target in parent.targets)
        if isinstance(parent, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            others = not isinstance(parent, ast.NamedExpr) or self.is_only_reported(parent)
            return others and self._collects(parent.target)
        if isinstance(parent, ast.If):
            return node is parent.test and self._decides_little(parent)
        if isinstance(parent, ast.Return):
            return self._is_returned_to_reports(parent)
        return False

    def _is_reported_by(self, call: ast.Call, node: ast.AST) -> bool:
        """Whether a call that is given a value, or is a method of it, only reports it."""
        name = _name_of(call.func)
        if node is call.func:
            return self._is_method_of_reported(call, name)
        base = call.func.value if isinstance(call.func, ast.Attribute) else None
        functions = self._file.functions.get(name, [])
        if functions:
            return all(self._is_reported_in(function, call, node) for function in functions)
        if base is not None and name in _COLLECTS:
            return self._keeps(base)
        if name in _PASSES_ON or (isinstance(base, ast.Name) and base.id in _COMPUTE):
            return self.is_only_reported(call)
        return _reports(call)

    def _is_method_of_reported(self, call: ast.Call, name: str) -> bool:
        if name in _COLLECTS or name in ("clear", "reset"):
            return True
        return name in _PASSES_ON and self.is_only_reported(call)

    def _is_reported_in(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, node: ast.AST
    ) -> bool:
        """Whether a function of the file only reports the argument that a node is."""
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        if names and names[0] in ("self", "cls") and isinstance(call.func, ast.Attribute):
            del names[0]
        given: dict[ast.AST, str | None] = {}
        given.update(zip(call.args, names))  # noqa: B905  (Python 3.8)
        given.update((keyword, keyword.arg) for keyword in call.keywords)
        name = given.get(node)
        if name is None:
            return False
        inside = function.body[0]
        return all(self.is_only_reported(load) for load in self._file.loads(name, inside))

    def _is_returned_to_reports(self, statement: ast.Return) -> bool:
        """Whether all that call the function of a ``return`` only report the result."""
        function = self._file.scope_of(statement)
        name = getattr(function, "name", "")
        calls = self._file.calls.get(name, [])
        used = [
            *self._file.loads(name, self._file.tree),
            *self._file.attributes(name, ast.Load),
        ]
        # A function that is handed over may be called anywhere.
        if len(used) != len(calls) or not self._is_of_this_file(name):
            return False
        return bool(calls) and all(self.is_only_reported(call) for call in calls)

    def _collects(self, target: ast.AST) -> bool:
        """Whether what is assigned to a target, or collected in it, is only reported."""
        if isinstance(target, (ast.Tuple, ast.List)):
            return all(self._collects(each) for each in target.elts)
        if isinstance(target, ast.Starred):
            return self._collects(target.value)
        if isinstance(target, ast.Subscript):
            return self._keeps(target.value)
        if isinstance(target, ast.Name):
            key: Any = target.id, self._file.scope_of(target)
            loads = self._file.loads(target.id, target)
            is_seen = key[1] is not self._file.tree or self._is_of_this_file(target.id)
        elif isinstance(target, ast.Attribute) and _name_of(target.value) == "self":
            key = target.attr, None
            loads = self._file.attributes(target.attr, ast.Load)
            is_seen = self._is_of_this_file(target.attr)
        else:
            return False
        if key in self._followed:
            return True
        self._followed.add(key)
        return is_seen and all(self.is_only_reported(load) for load in loads)

    def _keeps(self, container: ast.expr) -> bool:
        """Whether a container was made in this file, and what it holds is only reported.

        One that comes from elsewhere, as a group of an optimiser does, is read elsewhere, too.
        """
        if isinstance(container, ast.Name):
            stores = self._file.stores(container.id, container)
        elif isinstance(container, ast.Attribute):
            stores = self._file.attributes(container.attr, ast.Store)
        else:
            return False
        made = [self._file.parents[store] for store in stores]
        return bool(made) and all(map(_makes_container, made)) and self._collects(container)

    def _is_of_this_file(self, name: str) -> bool:
        """Whether no other file asks for a name as an attribute or imports it."""
        return re.search(rf"(\.\s*|\bimport\b.*\b){re.escape(name)}\b", self._others) is None

    def _decides_little(self, choice: ast.If) -> bool:
        """Whether a decision only reports, saves or stops."""
        return all(
            self._does_little(statement)
            for statement in itertools.chain(choice.body, choice.orelse)
        )

    def _does_little(self, statement: ast.stmt) -> bool:
        if isinstance(statement, _STOPS):
            return True
        if isinstance(statement, ast.If):
            return self._decides_little(statement)
        if isinstance(statement, (ast.With, ast.For)):
            return all(self._does_little(each) for each in statement.body)
        if isinstance(statement, ast.Assign):
            return all(self._collects(target) for target in statement.targets)
        if isinstance(statement, ast.AugAssign):
            return self._collects(statement.target)
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return False
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr in _COLLECTS:
            return self._keeps(function.value)
        return _reports(statement.value)


def _reports(call: ast.Call) -> bool:
    """Whether the name of a function says that it prints, logs, draws or saves."""
    name = _name_of(call.func)
    if name == "log":  # without an object, it is the logarithm
        return isinstance(call.func, ast.Attribute)
    return name in _REPORTS or name.startswith(_REPORTS_BY_PREFIX)


def _makes_container(statement: ast.AST) -> bool:
    """Whether a statement assigns a new container, or adds to one."""
    if isinstance(statement, ast.AugAssign):
        return True
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    value = statement.value
    if isinstance(value, ast.BinOp):
        value = value.left
    if isinstance(value, ast.Call):
        return _name_of(value.func) in _CONTAINERS
    return isinstance(value, _DISPLAYS)


def _name_of(function: ast.AST) -> str:
    """Return the name of a called function, without the object that it belongs to."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _position(frame: FrameType) -> tuple[Any, Any, Any, Any]:
    """Return first and last line, first and last column of what a frame executes.

    Columns are None before Python 3.11.
    """
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return frame.f_lineno, None, None, None
    line, last_line, column, last_column = next(
        itertools.islice(positions(), frame.f_lasti // 2, None)
    )
    return line or frame.f_lineno, last_line, column, last_column
