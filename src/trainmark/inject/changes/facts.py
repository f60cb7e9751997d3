"""Facts of a training that the plan of the experiments depends on, from all of its frameworks."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any
from weakref import WeakKeyDictionary

from ..observer import clock
from . import lines
from .calls import Calls
from .switches import Switches


class Facts:
    """What is known of a training.

    Args:
        observer: gets them now and then.
    """

    def __init__(self, observer: Any) -> None:
        self._observer = observer
        self._has_begun = False
        self._is_apart = False
        self._kept: Collection[str] | None = None
        self._loaded: Callable[[], list[lines.Loaded]] = list
        self.found: dict[str, Any] = {}
        self.calls = Calls(observer)
        self.switches = Switches(observer)

    def begin(
        self,
        is_evaluated: Callable[[], bool] = bool,
        kept: Collection[str] | None = None,
        loaded: Callable[[], list[lines.Loaded]] = list,
    ) -> None:
        """Sample the calling thread, and count calls, from the first step of any framework on.

        Args:
            is_evaluated: whether what is being loaded is for an evaluation.
            kept: names of the facts from samples that are meaningful; all by default.
            loaded: returns the samples of worker processes.
        """
        if self._has_begun:
            return
        self._has_begun = True
        self._kept = kept
        self._loaded = loaded
        self.calls.begin()
        lines.sample(self._observer, self._tell, is_evaluated, lambda: self._is_apart)

    def inspect(self, look: Callable[[], None]) -> None:
        """Run a longer inspection, and leave its time out of the training's.

        An error is reported, never raised.
        """
        began = clock()
        self._is_apart = True
        try:
            look()
        except Exception as error:  # noqa: BLE001  (the user's script must go on)
            self._observer.cannot("facts", f"{type(error).__name__}: {error}"[:200])
        finally:
            self._is_apart = False
        self._observer.took_apart(clock() - began)

    def _tell(self, samples: lines.Samples) -> None:
        sampled = samples.facts(self._loaded())
        kept = sampled.keys() if self._kept is None else self._kept
        told = {
            **self.found,
            "calls": self.calls.facts(),
            "switches": self.switches.facts(),
            **{name: sampled[name] for name in kept if name in sampled},
        }
        self._observer.changed("facts", json.dumps(told))


_OF_OBSERVER = WeakKeyDictionary()  # type: WeakKeyDictionary[Any, Facts]


def facts_of(observer: Any) -> Facts:
    """Return the facts that an observer gets."""
    if observer not in _OF_OBSERVER:
        _OF_OBSERVER[observer] = Facts(observer)
    return _OF_OBSERVER[observer]
