"""Observe a function of a framework from inside, so that it stays the same function.

A wrapper would be another object, with its own identity, signature and pickle, and it would put a
frame between the script and the function: ``torch.jit.script`` looks up names in its caller, and
``warnings.warn(..., stacklevel=2)`` names it. Here, calls of ours are compiled into the function's
own code, at its start, at each ``return`` and at its end. They have returned before the function
goes on, so no frame of ours ever lies between two others. Lines and columns stay as they are in the
file, so that tracebacks are the same, too.
"""

from __future__ import annotations
import __future__

import ast
import inspect
from collections.abc import Generator, Sequence
from types import CodeType, FunctionType
from typing import Any, Callable  # noqa: UP035  (Python 3.8 has no aliases of the other one)

Observes = Callable[[Any], "Generator[None, Any, None]"]
"""Is given the arguments of a call by their names, and yields once: until the function has ended.
It is then sent the result; it is closed if the function has raised."""
Failed = Callable[[str, Exception], None]
"""Is called with the name of a function and the error of what observes it."""
_BEGIN = "_trainmark_begin_"
_CALL = "_trainmark_call"
_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag
_INSIDE: dict[FunctionType, _Inside] = {}
"""The functions with calls of ours."""


def observe_inside(function: Any, observes: Observes, failed: Failed) -> None:
    """Observe a function that is written in Python; if it is decorated, the innermost one.

    Raises:
        TypeError: it is not written in Python.
        OSError: its source can't be read.
        ValueError: its source isn't what runs.
    """
    _inside(function).observers.append((observes, failed))


def replace_result(function: Any, by: Callable[[Any], Any]) -> None:
    """Replace what a function returns; the errors are those of :func:`observe_inside`."""
    _inside(function).replacing.append(by)


def leave(function: Any) -> None:
    """Give a function its own code back."""
    inside = _INSIDE.pop(inspect.unwrap(function), None)
    if inside is not None:
        inside.leave()


def _inside(function: Any) -> _Inside:
    real = inspect.unwrap(function)
    if not isinstance(real, FunctionType):
        raise TypeError(f"{real!r} is not written in Python")
    if real not in _INSIDE:
        _INSIDE[real] = _Inside(real)
    return _INSIDE[real]


class _Inside:
    """What is compiled into a function.

    Attributes:
        name: the function's name.
        observers: what observes it.
        replacing: what replaces its result.
    """

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._code = function.__code__
        self._unseen = _Unseen(self, ())
        self.name = function.__name__
        self.observers: list[tuple[Observes, Failed]] = []
        self.replacing: list[Callable[[Any], Any]] = []
        begin = f"{_BEGIN}{len(_INSIDE)}"
        code = _with_calls(function, begin)
        function.__globals__[begin] = self.begin
        function.__code__ = code

    def leave(self) -> None:
        """Give the function its own code back."""
        self._function.__code__ = self._code

    def begin(self, arguments: dict[str, Any]) -> _Call:
        """Begin to observe a call."""
        observing = []
        for observes, failed in self.observers:
            each = observes(arguments)
            try:
                next(each)
            except StopIteration:
                continue
            # The script must go on
            except Exception as error:  # noqa: BLE001
                failed(self.name, error)
            else:
                observing.append((each, failed))
        return _Call(self, observing) if observing else self._unseen


class _Call:
    """A call of a function, and what observes it."""

    __slots__ = ("_has_returned", "_inside", "_observing", "_result")

    def __init__(
        self, inside: _Inside, observing: Sequence[tuple[Generator[None, Any, None], Failed]]
    ) -> None:
        self._inside = inside
        self._observing = observing
        self._result: Any = None
        self._has_returned = False

    def returns(self, result: Any = None) -> Any:
        """Return what the function returns instead of ``result``."""
        for by in self._inside.replacing:
            result = by(result)
        self._result = result
        self._has_returned = True
        return result

    def end(self) -> None:
        """The function has returned or raised."""
        for observing, failed in self._observing:
            try:
                if self._has_returned:
                    observing.send(self._result)
                else:
                    observing.close()
            except StopIteration:
                continue
            except Exception as error:  # noqa: BLE001
                failed(self._inside.name, error)


class _Unseen(_Call):
    """A call that nothing observes; it is shared by all such calls, and so keeps nothing."""

    def returns(self, result: Any = None) -> Any:
        """Return what the function returns instead of ``result``."""
        for by in self._inside.replacing:
            result = by(result)
        return result


_ours: tuple[Any, ...] = (_Inside.begin, _Call.returns, _Call.end, _Unseen.returns)
for _each in _ours:
    _each._torchdynamo_disable = True  # compilers must not look into it


def _with_calls(function: FunctionType, begin: str) -> CodeType:
    """Return the code of a function with calls of ours."""
    code = function.__code__
    source = inspect.getsource(code)
    is_indented = source[0].isspace()
    tree = ast.parse(f"if 1:\n{source}" if is_indented else source)
    body = tree.body[0].body if is_indented else tree.body  # type: ignore[attr-defined]
    defined = body[0]
    if not isinstance(defined, ast.FunctionDef) or defined.name != code.co_name:
        raise ValueError(f"the source of {function.__qualname__} is not a function")
    _insert_calls(defined, begin, is_generator=inspect.isgeneratorfunction(function))
    tree.body = [_enclosed(defined, function)]
    ast.fix_missing_locations(tree)
    ast.increment_lineno(tree, code.co_firstlineno - (2 if is_indented else 1))
    flags = code.co_flags & _FUTURES
    module = compile(tree, code.co_filename, "exec", flags, dont_inherit=True)
    found = next(_found(module, code), None)
    if found is None:
        raise ValueError(f"the source of {function.__qualname__} is not what runs")
    if hasattr(code, "co_qualname"):  # since Python 3.11
        found = found.replace(co_qualname=code.co_qualname)
    return found


def _insert_calls(defined: ast.FunctionDef, begin: str, *, is_generator: bool) -> None:
    """Call ``begin`` at the start of a function, and its result where the function returns."""
    has_docstring = ast.get_docstring(defined, clean=False) is not None
    start = defined.body[: int(has_docstring)]
    body = defined.body[int(has_docstring) :]
    if not is_generator:
        returns = _Returns()
        body = [returns.visit(each) for each in body]
        body.append(ast.Expr(_call("returns")))
    called = ast.Call(
        ast.Name(begin, ast.Load()), [ast.Call(ast.Name("locals", ast.Load()), [], [])], []
    )
    assigned = ast.Assign([ast.Name(_CALL, ast.Store())], called)
    tried = ast.Try(body, [], [], [ast.Expr(_call("end"))])
    first = defined.body[0]
    for each in (assigned, tried):
        ast.copy_location(each, first)
    defined.body = [*start, assigned, tried]


class _Returns(ast.NodeTransformer):
    """Passes what a function returns through our call; not what functions inside of it return."""

    def visit_Return(self, node: ast.Return) -> ast.Return:
        value = [] if node.value is None else [node.value]
        call = _call("returns", *value)
        ast.copy_location(call, node)
        return ast.copy_location(ast.Return(call), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node


def _call(method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(
        ast.Attribute(ast.Name(_CALL, ast.Load()), method, ast.Load()), [*arguments], []
    )


def _enclosed(defined: ast.FunctionDef, function: FunctionType) -> ast.stmt:
    """Return a definition inside of what gives it the same private names and outer variables."""
    enclosed: ast.stmt = defined
    _, _, owner = function.__qualname__.rpartition(".")[0].rpartition(".")
    is_method = owner.isidentifier()
    if is_method:
        enclosed = ast.ClassDef(owner, [], [], [enclosed], [])
        _allow_parameters(enclosed)
        ast.copy_location(enclosed, defined)
    outer = [
        name for name in function.__code__.co_freevars if not (is_method and name == "__class__")
    ]
    if outer:
        arguments = ast.arguments([], [ast.arg(name) for name in outer], None, [], [], None, [])
        enclosed = ast.FunctionDef("outer", arguments, [enclosed], [])
        _allow_parameters(enclosed)
        ast.copy_location(enclosed, defined)
    return enclosed


def _allow_parameters(node: Any) -> None:
    """Give a node the field that it needs since Python 3.12."""
    if "type_params" in node._fields:
        node.type_params = []


def _found(within: CodeType, like: CodeType) -> Generator[CodeType, None, None]:
    """Yield the code in ``within`` that can take the place of another one."""
    for each in within.co_consts:
        if isinstance(each, CodeType):
            is_same = all(
                getattr(each, name) == getattr(like, name)
                for name in ("co_name", "co_firstlineno", "co_freevars", "co_flags", "co_argcount")
            )
            if is_same:
                yield each
            yield from _found(each, like)
