"""Where one evaluation ends and another begins, if no step is between them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from types import CodeType, FrameType

from .places import is_users_file


class Evaluators:
    """The loaders, or else the functions of the user, by which the network is evaluated."""

    def __init__(self) -> None:
        self._loaders: set[int] = set()
        self._codes_of_loaders: set[CodeType | None] = set()
        self._code: CodeType | None = None
        self._callers: list[tuple[tuple[str, int], ...]] = []
        self._alternating: set[tuple[tuple[str, int], ...]] = set()

    def more(self, loader: int, frame: FrameType | None) -> int:
        """Return how many more evaluations there are than was known before this pass.

        There is another one if another loader is read or, without one, if the function that
        evaluates is called on another line. If the script then comes back to the first line, it
        was a single one after all, and the number is negative.

        Args:
            loader: number of the loader that is read; 0 if there is none.
            frame: the call of the network.
        """
        if loader in self._loaders:
            return 0
        code, callers = _users(frame)
        if loader:
            is_new = bool(self._loaders)
            self._loaders.add(loader)
            self._codes_of_loaders.add(code)
            return int(is_new)
        # A loader that is read ahead has ended when its last batch is computed.
        if code in self._codes_of_loaders:
            return 0
        if code is not self._code:
            self._forget_callers()
            self._code = code
        return self._called_on(callers)

    def _called_on(self, lines: tuple[tuple[str, int], ...]) -> int:
        """Return how many more evaluations there are than before this call on these lines."""
        if lines in self._alternating:
            return 0
        if lines not in self._callers:
            self._callers.append(lines)
            return int(len(self._callers) > 1)
        later = self._callers[self._callers.index(lines) + 1 :]
        self._alternating.update(later)
        self._callers = self._callers[: len(self._callers) - len(later)]
        return -len(later)

    def forget(self) -> None:
        """Forget what has evaluated so far, since a step follows."""
        self._loaders.clear()
        self._codes_of_loaders.clear()
        self._forget_callers()

    def _forget_callers(self) -> None:
        self._code = None
        self._callers = []
        self._alternating = set()


def _users(frame: FrameType | None) -> tuple[CodeType | None, tuple[tuple[str, int], ...]]:
    """Return the user's innermost code on the stack, and the lines on which it was called."""
    code = None
    lines = []
    while frame is not None:
        if is_users_file(frame.f_code.co_filename):
            code = code or frame.f_code
            lines.append((frame.f_code.co_filename, frame.f_lineno or 0))
        frame = frame.f_back
    return code, tuple(lines[1:])


class EarlyPasses:
    """Forward passes in evaluation mode before any step, when it is unknown which network trains.

    A single pass may only show the network's shapes. Some libraries try a few batches of a loader
    first, which is no evaluation either.
    """

    def __init__(self) -> None:
        self._networks: dict[int, _Early] = {}

    def passed(self, network: object, loader: int, now: float) -> None:
        """A network computes without gradients.

        Args:
            loader: number of the loader that is read; 0 if there is none.
        """
        known = self._networks.get(id(network))
        if known is None or known.network() is not network:
            key = id(network)
            reference = weakref.ref(network, lambda _: self._networks.pop(key, None))
            known = self._networks[key] = _Early(reference, now, loader)
        known.passes += 1
        known.latest = now

    def exhausted(self, loader: int, now: float) -> None:
        """A loader has no more batches."""
        for each in self._networks.values():
            if each.loader == loader:
                each.loader = 0
                each.latest = now

    def seconds(self, networks: Iterable[object]) -> float | None:
        """Return how long one of these was evaluated, but for its last pass if there is no loader.

        The result is None if none was evaluated, or not completely.
        """
        for network in networks:
            known = self._networks.get(id(network))
            is_same = known is not None and known.network() is network
            if known is not None and is_same and known.passes > 1 and not known.loader:
                return known.latest - known.began
        return None

    def forget(self) -> None:
        """Forget them, since the network that trains is known."""
        self._networks.clear()


class _Early:
    """The passes of one network; ``loader`` is what it reads, 0 once that has ended."""

    def __init__(self, network: Callable[[], object], began: float, loader: int) -> None:
        self.network = network
        self.began = began
        self.latest = began
        self.loader = loader
        self.passes = 0
