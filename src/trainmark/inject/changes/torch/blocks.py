"""Changes that can be switched between steps, tried one after the other within one training.

Where a process takes long to start, this ranks them, so that only those that may win get separate
processes. It judges neither how fast nor how well they train: a block is short, and each begins
with the same weights again.
"""

from __future__ import annotations

import json
import statistics
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from ... import accelerator
from ...identity import Identities
from ...observer import clock
from ...patch import around
from .. import Change, trial_blocks
from .beside_steps import no_sync
from .loader import same_batch
from .model import bf16, fp16, tf32, threads
from .optimizer import foreach, fused
from .outermost import around_modules
from .state import State
from .switched_off import no_anomaly, no_checkpointing, no_empty_cache, no_gc

_FIRST_STEPS = 3
"""Steps before the first block, in which optimisers create their state."""
_MOST_PAUSES = 3
"""How often a block is repeated because of an evaluation or a save."""
_LOST_STEPS = 100
"""Steps of other optimisers after which the one whose steps count is taken to be gone."""
SWITCHABLE = {
    "no-anomaly": no_anomaly,
    "no-gc": no_gc,
    "no-sync": no_sync,
    "same-batch": same_batch,
    "tf32": tf32,
    "threads": threads,
    "fused": fused,
    "foreach": foreach,
    "bf16": bf16,
    "no-empty-cache": no_empty_cache,
    "no-checkpointing": no_checkpointing,
    "fp16": fp16,
}
"""What can be switched. Changes that may crash the script come last."""
_RISKY = {"bf16", "no-empty-cache", "no-checkpointing", "fp16"}
"""Changes after which an operator may be missing, or memory may run out."""


def trials(change: Change) -> None:
    """Try the changes that are named in the value, separated by semicolons.

    Reports the speed-ups of each, one for each block; then ends the process.
    """
    _Trials(change, [name for name in change.value.split(";") if name])


class _Tried(Change):
    """A change that is tried; it reports nothing itself.

    Args:
        name: its name with its value.
        observer: knows which code is the user's.
    """

    def __init__(self, name: str, observer: Any) -> None:
        super().__init__(name, observer, is_on=False)
        self.is_refused = False

    def took(self, proof: str) -> None:  # noqa: ARG002
        """Note that it took effect."""
        self.done = True

    def proves(self, proof: str) -> None:
        """Note that it took effect."""
        self.took(proof)

    def cannot(self, why: str) -> None:  # noqa: ARG002
        """Note that it can't be applied."""
        self.is_refused = not self.done

    def keeps(self, why: Callable[[], str]) -> None:
        """Do nothing: it may still be applied to another part of the script."""


class _Block(NamedTuple):
    """Steps with one change, or with none.

    Args:
        change: the change; None if the script is unchanged.
        seconds: duration of a step.
    """

    change: _Tried | None
    seconds: float


class _Trials:
    """The blocks of one process, with a change or without one.

    Args:
        change: the experiment, which reports what was found.
        names: the changes to try.
    """

    def __init__(self, change: Change, names: list[str]) -> None:
        self._change = change
        self._observer = change.observer
        self._changes = [_Tried(name, change.observer) for name in names]
        self._changes.sort(key=lambda each: list(SWITCHABLE).index(each.word))
        self._modules = Identities()
        around_modules(self._called)
        for each in self._changes:
            try:
                SWITCHABLE[each.word](each)
            except Exception as error:  # noqa: BLE001  (the others are tried)
                each.cannot(f"{type(error).__name__}: {error}"[:200])
        self._scalers = Identities()
        for amp in (torch.cuda.amp, torch.amp):  # the latter has one since PyTorch 2.3
            if hasattr(amp, "GradScaler"):
                around(amp.GradScaler, "step", self._scaled)
        self._optimizers = Identities()
        self._leader: weakref.ref[Any] | None = None
        self._since_leader = 0
        self._begin_again()
        register_optimizer_step_post_hook(self._stepped)

    def _called(self, module: Any, inner: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        self._modules.add(module)
        return inner(*args, **kwargs)

    def _scaled(self, real: Any, scaler: Any, /, *args: Any, **kwargs: Any) -> Any:
        self._scalers.add(scaler)
        return real(scaler, *args, **kwargs)

    def _begin_again(self) -> None:
        """Start again with the first block: another training has begun."""
        self._state: State | None = None
        self._steps = -_FIRST_STEPS
        self._began = clock()
        self._pauses = 0
        self._repeated = 0
        self._blocks: list[_Block] = []
        self._order = self._in_turns()
        self._now: _Tried | None = None
        for each in self._changes:
            each.switch(is_on=False)

    def _in_turns(self) -> Iterator[_Tried | None]:
        """Yield what the blocks are about: every other one is unchanged."""
        safe = [each for each in self._changes if each.word not in _RISKY]
        risky = [each for each in self._changes if each.word in _RISKY]
        for changes in (safe, risky):
            for _ in range(trial_blocks.PASSES):
                for each in changes:
                    yield None
                    yield each
        yield None

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        """End a step, unless another optimiser ends it."""
        self._optimizers.add(optimizer)
        leader = self._leader() if self._leader is not None else None
        if leader is not optimizer and leader is not None and self._since_leader < _LOST_STEPS:
            self._since_leader += 1
            return
        if leader is not optimizer:
            self._leader = weakref.ref(optimizer)
            self._begin_again()
        self._since_leader = 0
        self._steps += 1
        if self._state is None:
            self._prepare()
        elif self._steps == trial_blocks.UNTIMED_STEPS:
            self._wait()
            self._began = clock()
            self._pauses = self._observer.pauses
        elif self._is_over():
            self._end_block()

    def _is_over(self) -> bool:
        """Whether a block has been long enough."""
        timed = self._steps - trial_blocks.UNTIMED_STEPS
        return timed >= trial_blocks.FEWEST_STEPS and self._seconds >= trial_blocks.BLOCK_SECONDS

    @property
    def _seconds(self) -> float:
        """Seconds since the first timed step of a block."""
        return clock() - self._began

    def _prepare(self) -> None:
        """Keep the state of the training, and begin the first block."""
        if self._steps == 0:
            self._state = State(self._modules, self._optimizers, self._scalers)
            self._begin_block()

    def _begin_block(self) -> None:
        self._steps = 0
        self._repeated = 0
        while True:
            try:
                self._now = next(self._order)
            except StopIteration:
                self._observer.end()
                return
            if self._now is None or not self._now.is_refused:
                break
        if self._now is not None:
            self._now.switch(is_on=True)

    def _end_block(self) -> None:
        self._wait()
        if self._observer.pauses != self._pauses and self._repeated < _MOST_PAUSES:
            self._repeated += 1
            self._steps = 0
            return
        steps = self._steps - trial_blocks.UNTIMED_STEPS
        self._blocks.append(_Block(self._now, self._seconds / steps))
        if self._now is not None:
            self._now.switch(is_on=False)
        self._report()
        if self._state is not None:
            self._state.put_back()
        self._begin_block()

    def _wait(self) -> None:
        """Wait until the device has computed everything."""
        accelerator.synchronize(torch)

    def _report(self) -> None:
        """Report the speed-ups so far: against the unchanged blocks before and after it."""
        found: dict[str, list[float]] = {}
        triples = zip(self._blocks, self._blocks[1:], self._blocks[2:])  # noqa: B905  (Python 3.8)
        for before, block, after in triples:
            if block.change is not None and block.change.done:
                unchanged = statistics.mean((before.seconds, after.seconds))
                found.setdefault(block.change.name, []).append(unchanged / block.seconds)
        self._observer.changed(self._change.name, json.dumps(found))
