"""What a training does, whatever its framework, and where it pauses and ends.

Steps, epochs, evaluations and waiting are observed.

The files of the frameworks call the methods below. Nothing here may break the user's script: wrap
every callback with :meth:`Observer.guarded`, and every patch in :meth:`Observer.attempt`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import operator
import os
import sys
import time
from collections.abc import Callable, Generator
from types import FrameType, SimpleNamespace
from typing import Any

from . import best_threads
from .amounts import Amounts, Since
from .evaluators import EarlyPasses, Evaluators
from .first_turn import FirstTurn
from .forward_time import ForwardTime
from .hooks import HOOK, hook_of_script, load_hook
from .inside import Observes
from .leaving import leave
from .one_at_a_time import OneAtATime
from .passes import Passes, Predictions, TrainingData
from .places import Places, is_users_file, users_place
from .planned import steps_left
from .processes import Processes
from .sources import Sources
from .step_memory import StepMemory
from .step_times import StepTimes
from .tally import Tally
from .trainings import Step, Trainings
from .unseen_learning import why_unseen

FOLDER = "TRAINMARK_OBSERVER"
"""Environment variable: a folder in which the processes of a command agree on their roles."""
_MOST_LOSSES = 2_000
"""Steps from the start whose losses are all kept."""
_THEN_EVERY = 100
"""Distance in steps between the losses that are kept after these."""
_LOSSES_OF_LINE = 80
"""Most losses in one line of a report; more are sent in several lines."""
FEW = 3
"""Number of steps in which the input of the network is examined more closely."""
_STEPS_BETWEEN_LOOKS = (5, 11, 8, 7, 7)
"""Steps from a look at the input of a network to the next one, where the loader counts the
examples. The looks see whether images or sequences grow; uneven distances miss nothing that
recurs."""
_OFTEN = 8
"""An evaluation that follows another one after at most this many steps is a part of the step."""
_MOST_ODD_TARGETS = 2
"""Number of targets with other numbers of rows than the input, from which on the rows are not
examples."""
_MOST_TRAININGS = 100
"""Most trainings whose beginnings are reported."""
_UNDECIDED, _SPEAKS, _FOLLOWS, _OFF = range(4)
clock = time.perf_counter


def _nothing() -> None:
    return None


def _ignore(*_: Any, **__: Any) -> None:
    return None


def _no_messages(_: bool) -> list[dict[str, Any]]:
    return []


def _unseen() -> Generator[None, Any, None]:
    """Observe nothing."""
    yield from ()


class Observer:
    """Observes the training of this process, and reports it if it is the command's first one.

    Attributes:
        framework: the framework that trains; set by the one that steps first.
        steps: number of steps so far.
        describe: for each framework, returns ``threads``, ``precision``, ``device`` and
            ``device_peak_bytes``, as far as they are known.
        read_losses: of each framework: converts losses that were kept by reference to numbers; may
            synchronise.
        networks_unseen: frameworks whose networks would be seen, of which none was called yet.
        threads: the CPU threads of each framework that can change their number in a running
            process.
        is_steady: whether another call of the network to train, with gradients, says nothing new.
        step_began: when the optimiser's current step began; 0 outside of one.
        trainings: the optimisers whose steps count.
        evaluates_since: when the current evaluation began; None outside of one.
        device_bytes: for each framework, a function that returns how many bytes it has allocated
            on the device; None if unknown.
        also_report: returns further messages for a report, given whether tensors may be read.
        is_led: whether a framework that is built on another one reports the steps itself, as Keras
            does in ``fit``.
        examples_unknown: why a framework can't know the number of examples; empty if it can.
        look_for_last_step: reports a step that has ended without telling, if there is one.
    """

    def __init__(self, folder: str) -> None:
        self._processes = Processes(folder)
        self._role = _UNDECIDED
        self._hook: Any = None
        self._pace: Any = None
        self._own_epochs = False
        self.framework = ""
        self.describe: dict[str, Callable[[], dict[str, Any]]] = {}
        self.read_losses: dict[str, Callable[[list[Any]], list[float]]] = {}
        self.device_bytes: dict[str, Callable[[], int | None]] = {}
        self.networks_unseen: set[str] = set()
        self.threads: dict[str, best_threads.Settable] = {}
        self._first_turn = FirstTurn(folder)
        self.is_led = False
        self.examples_unknown = ""
        self.look_for_last_step: Callable[[], None] = _nothing
        self.also_report: Callable[[bool], list[dict[str, Any]]] = _no_messages
        self.injected: list[str] = []
        self.places = Places()
        self._tally = Tally()
        self.steps = 0
        self.trainings = Trainings()
        self._sources = Sources()
        self._since = Since()
        self._amounts = Amounts()
        self._times = StepTimes()
        self._memory = StepMemory(self._device_bytes)
        self._passes: Passes | None = None
        self._predictions = Predictions()
        self._training_data = TrainingData()
        self._held_out_places: set[str] = set()
        self._elements = 0.0
        self._forward = ForwardTime()
        self._forward_places: list[str] = []
        self._known_forward_places: set[str] = set()
        self._looks = itertools.cycle(_STEPS_BETWEEN_LOOKS)
        self._looks_in = 0
        self._rows = 0
        self._awaits_loss = False
        self._odd_targets = 0
        self._passes_of_step = 0
        self._closure_passes = 0
        self._closure_since = Since()
        self._closure_has_loss = False
        self._has_further_losses = False
        self._waited_for_steps = 0.0
        self._mark = 0.0
        self._report_at = 0.0
        self._opened = 0.0
        self._fetch = 0.0
        self.is_steady = False
        self._first_steps = 1
        self._last_read = -1
        self._loss: Any = None
        self._losses: list[float] = []
        self._unread: list[tuple[str, Any]] = []
        self._epoch = _Epoch()
        self._epochs = 0
        self._told_until = 0.0
        self._due: float | None = None
        self._tested_at: float | None = None
        self.evaluates_since: float | None = None
        self._evaluators = Evaluators()
        self._early = EarlyPasses()
        self._evaluated_at = -_OFTEN - 1
        self._evaluates_often = False
        self._trains_in_eval = False
        self.step_began = 0.0
        self._loader_place: str | None = None
        self._loading_place: str | None = None
        self.planned_steps: int | None = None
        self._starts = OneAtATime(self._processes)
        self._is_cut = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    # For the files of the frameworks: how to hook

    def attempt(self, what: str, patch: Callable[[], object]) -> None:
        """Patch something of a framework; a failure is reported, and the script continues."""
        try:
            patch()
        # A framework's internals may have changed in any way
        except Exception as error:  # noqa: BLE001
            self.injected.append(f"not {what}: {type(error).__name__}: {error}"[:200])
        else:
            self.injected.append(what)

    def guarded(self, call: Callable[..., None]) -> Callable[..., None]:
        """Return a callback that can't raise.

        An error is reported, and turns off the observer that reports.
        """

        @functools.wraps(call)
        def callback(*args: Any, **more: Any) -> None:
            if self._role != _OFF:
                try:
                    call(*args, **more)
                except Exception as error:  # noqa: BLE001
                    self.failed(call.__name__, error)

        # A compiler must not look into it
        callback._torchdynamo_disable = True  # type: ignore[attr-defined]
        return callback

    def observing(self, observes: Observes) -> Observes:
        """Return what observes a function from inside, until the observer is turned off."""

        def begin(arguments: dict[str, Any]) -> Generator[None, Any, None]:
            return _unseen() if self._role == _OFF else observes(arguments)

        return begin

    def failed(self, where: str, error: Exception) -> None:
        """Report an error of ours, and turn off the observer that reports."""
        failure = f"not {where}: {type(error).__name__}: {error}"[:200]
        if failure not in self.injected:
            self.injected.append(failure)
        if not self.speaks:  # without this callback, steps may still be seen
            return
        self._role = _OFF
        for describe in (self.describe, {}):  # the description may be what fails
            self.describe = describe
            with contextlib.suppress(Exception):
                self._report()
                break

    @property
    def speaks(self) -> bool:
        """Whether this process is the one that is reported; False before its first step."""
        return self._role == _SPEAKS

    # What happens

    def number_of(self, loader: object) -> int:
        """Return the number of a loader, for the methods below."""
        return self._sources.number_of(loader)

    def fetched(self, start: float, examples: int | None = None, loader: int = 0) -> None:
        """A loader has returned a batch, which was waited for from ``start`` until now.

        Args:
            examples: number of examples of the batch, if it is known.
            loader: the number of the loader; 0 if it is unknown.
        """
        self._fetch = start
        if not self.steps:
            self._loading_place = users_place(sys._getframe(1))
        if loader in self._sources.of_steps:
            self._predictions.fetches(start)
        self._since = self._since.plus(waited=clock() - start, loaded=examples or 0)
        self._tally.seconds.setdefault("loader_wait", 0.0)
        self._sources.current = loader

    def opened(self, loader: object, start: float) -> None:
        """The iteration of a loader has begun, which took from ``start`` until now."""
        self._end_read_epoch()
        self._opened = start
        if self._sources.number_of(loader) in self._sources.of_steps:
            self._predictions.fetches(start)
        self._since = self._since.plus(waited=clock() - start)
        if "loader" not in self.places:
            self._loader_place = self.places.place_of(loader) or self._loader_place

    def exhausted(self, steps_before: int, ends: bool = False, loader: int = 0) -> None:
        """A loader has no more batches.

        The epoch ends now or, if the loader was read ahead, with the next step. Without a loss, it
        was an evaluation, such as the accuracy of the training set.

        Args:
            steps_before: the :attr:`steps` when its iteration began.
            ends: whether an evaluation that is known already ends, too.
            loader: the number of the loader; 0 if it is unknown.
        """
        self._last_read = -1
        self._fetch = clock()
        self._early.exhausted(loader, self._fetch)
        if self._sources.current == loader:
            self._sources.current = 0
        if self.steps > steps_before and self._epoch.amounts.steps and not self.is_led:
            self._due = self._fetch
        elif (
            self.steps == steps_before
            and self._opened
            and (ends or self.evaluates_since is None)
            and not self.is_led
        ):
            if self._passes is not None and self._passes.place:
                self.places.setdefault("evaluation", self._passes.place)
            self._passes = None
            self.evaluating(self._opened)
            self.evaluated()

    def read_out(self, steps_before: int) -> None:
        """A loader has returned its last batch, as it knows.

        The reader may never learn that it is exhausted.
        """
        if self.steps > steps_before and not self.is_led:
            self._last_read = self.steps

    def forward(
        self,
        training: bool,
        grad: bool,
        examples: int | None = None,
        tokens: int | None = None,
        elements: int = 0,
        data: object = None,
        *,
        begins: bool = False,
        repeats: bool = False,
        moved: bool = False,
    ) -> None:
        """The network is about to compute a batch.

        Args:
            training: whether it is in training mode.
            grad: whether gradients are recorded.
            examples: number of examples of the batch; None if its input does not show them.
            tokens: number of tokens of the batch, if it has any.
            elements: number of elements of the input; 0 if it is unknown.
            data: the tensor that the input is, or is a part of; None if it is unknown.
            begins: whether the forward pass begins now, and is one of the network that leads, not
                of another one like it. Only these are timed and counted in every step.
            repeats: whether the input is the very tensor of the forward pass before, unchanged.
            moved: whether the weights have changed since that pass.
        """
        if grad and (training or self._trains_in_eval):
            self._starts.begins()
            if self._odd_targets >= _MOST_ODD_TARGETS:
                examples = None
            self._rows = examples or 0
            self._end_passes()
            if self.evaluates_since is not None:
                self._trains_again(clock())
            self._look_for_predictions()
            self._sources.trains()
            if data is not None:
                self._training_data.trained_on(data)
            if begins:
                self._passes_of_step += 1
                self._forward.begins(clock())
            # Weights that are moved for a moment, as sharpness-aware minimisation does, have a loss
            # that is not the script's.
            if repeats and moved and self._loss is not None and not self.step_began:
                self._has_further_losses = True
            if "forward" not in self.places or self.steps < FEW:
                place = users_place(sys._getframe(1))
                if self.is_led:  # Keras called it to build it, which is no forward pass
                    self._forward_places.clear()
                elif place and place not in self._forward_places:
                    self._forward_places.append(place)
            if repeats and self._awaits_loss:  # an actor and a critic, or two passes with dropout
                seen = Since(passes=1)
            else:
                seen = Since(
                    rows=examples or 0,
                    tokens=tokens or 0,
                    odd=examples is None,
                    again=self._awaits_loss,
                    elements=elements,
                    passes=1,
                )
            self._awaits_loss = True
            if self.step_began:  # a closure may be called several times for one step
                self._closure_passes += 1
                self._closure_since = self._closure_since.and_then(seen)
            else:
                self._since = self._since.and_then(seen)
        elif training and self.evaluates_since is None:
            if self._role == _SPEAKS:
                self._pass_without_gradients(sys._getframe(1), data)
        else:
            self.evaluating(self._opened if self._opened > self._mark else None)

    def passed_early(self, network: object) -> None:
        """A network computes in evaluation mode, before it is known which one trains."""
        self._early.passed(network, self._sources.current, clock())

    def network_found(self, framework: str, networks: list[object]) -> None:
        """The network that trains is known: the first of these, and what it wraps."""
        if not self.steps:  # otherwise, a step has called it in a way that can't be seen
            self.networks_unseen.discard(framework)
        seconds = self._early.seconds(networks)
        self._early.forget()
        is_built_by_calls = "keras" in self.describe
        if seconds is not None and not is_built_by_calls:
            self._tally.counts["evaluations"] += 1
            self._tally.add("evaluation", seconds)

    def forward_begins(self) -> None:
        """A forward pass begins whose input needs no look."""
        self._look_for_predictions()
        self._passes_of_step += 1
        self._forward.begins(clock())

    def compared(self, rows: int) -> None:
        """A loss function was given a target with this many rows.

        They are those of the network's last input, or a multiple if it predicts a sequence.
        """
        if self._rows and rows % self._rows:
            self._odd_targets += 1

    def evaluating(self, since: float | None = None, place: str | None = None) -> None:
        """An evaluation has begun, now or at ``since``.

        It ends with :meth:`evaluated`, or before the next step.

        Args:
            since: when it began, if that was earlier.
            place: where it is; by default, the user's line that is running now.
        """
        if self._passes is not None:
            self._end_passes(evaluates=True)
        if self._role == _SPEAKS:
            more = self._evaluators.more(self._sources.current, sys._getframe(1))
            if more < 0:
                self._tally.counts["evaluations"] += more
            elif more and self.evaluates_since is not None:
                self._trains_again(clock())
        if self.evaluates_since is None and self._role == _SPEAKS:
            self._end_read_epoch()
            self.evaluates_since = since or clock()
            self._forward.interrupted()
            if self._tally.counts["evaluations"] < FEW:
                here = users_place(sys._getframe(1)) if place is None else place
                self.places.keep_further("evaluation", here or "")
        self._forget_loaded()

    def evaluated(
        self,
        loss: float | None = None,
        accuracy: float | None = None,
        ended: float | None = None,
    ) -> None:
        """An evaluation has ended, now or at ``ended``, with these results."""
        if self.evaluates_since is not None:
            self._evaluated(ended or clock(), loss, accuracy)
        self._evaluators.forget()
        self._sources.current = 0
        self._since = self._since._replace(waited=0.0, loaded=0)

    def epoch(self, loss: float | None = None, accuracy: float | None = None) -> None:
        """An epoch has ended, as the framework says, with these means."""
        self._due = None
        if self._epoch.amounts.steps and self._role == _SPEAKS:
            self._epochs += 1
            self._end_epoch(clock(), loss, accuracy)

    def loss(self, value: Any) -> None:
        """A loss is about to be differentiated.

        It is a number, or anything that ``read_losses`` converts later; a list if several steps are
        reported at once.

        A step's loss is the sum of those since the previous step of any optimiser. Of those that a
        closure computes for one step, only the first counts.
        """
        self._forward.ends(clock())
        self._predictions.forget()
        self._awaits_loss = False
        self._keep_forward_places()
        # The network trains in evaluation mode, such as with frozen layers.
        if self.evaluates_since is not None:
            self._trains_in_eval = True
            self.evaluates_since = None
        self._opened = 0.0
        self._close_passes()
        if self._closure_has_loss or (self._has_further_losses and self._loss is not None):
            return
        self._closure_has_loss = bool(self.step_began)
        self._loss = value if self._loss is None else self._loss + value

    def differentiated(self, start: float) -> None:
        """A backward pass has taken from ``start`` until now."""
        self._tally.add_to_step("backward", clock() - start)

    def stepping(self, *_: Any) -> None:
        """An optimiser begins a step, or has computed the gradients that its step includes."""
        self.step_began = clock()

    def stepped(
        self, leader: object, framework: str, steps: int = 1, examples: int | None = None
    ) -> None:
        """An optimiser has ended a step.

        The step counts if the optimiser is the first one. The training may then pause or end.

        Args:
            leader: the optimiser, or the function that steps.
            framework: its framework.
            steps: number of steps, if the framework takes several at once.
            examples: number of examples, if the framework knows it; else, what the loader or the
                network has seen.
        """
        if not self.steps:
            self.planned_steps = self.planned_steps or steps_left(sys._getframe(1))
            self.places.keep("optimizer_step", sys._getframe(1))
            if self._loading_place:
                self.places.setdefault("loading", self._loading_place)
        step = self._ended(leader, framework, steps, examples)
        self.trainings.frameworks[framework] += steps
        if self.trainings.leads(leader):
            between = self.trainings.between()
            self._step(step._replace(since=between.and_then(step.since)))
        elif self.trainings.waits(step):
            self._lead_another(framework)
        if self._role == _OFF:
            return
        if self._role == _SPEAKS:
            self._take_turns()
        if self._processes.ends_after(self.steps):
            self.end()

    def wait_for_devices(self) -> None:
        """Wait for everything that is queued."""
        if self._role == _SPEAKS:
            self._hook._synchronize()

    def waited_for_steps(self, seconds: float) -> None:
        """The script ends, and has waited this long for steps that were queued."""
        self._waited_for_steps = seconds

    def skipped(self) -> None:
        """A step was skipped, such as by a gradient scaler."""
        self._tally.counts["skipped"] += 1

    def saved(self, seconds: float, frame: FrameType) -> None:
        """A file was saved by the code of ``frame``."""
        if self._role == _SPEAKS:
            self._tally.counts["saves"] += 1
            if self.evaluates_since is None:  # otherwise it is a part of the evaluation
                self._tally.add_to_step("saving", seconds)
            self.places.keep("save", frame)

    def synchronised(self, call: str, seconds: float, frame: FrameType, times: int = 1) -> None:
        """The user's code of ``frame`` has read a tensor by ``call``, such as ``.item()``.

        Args:
            times: number of reads that this one stands for.
        """
        self._tally.read(frame, call, times)
        if self.evaluates_since is None:  # otherwise the read is a part of the evaluation
            self._tally.add_to_step("sync", times * seconds)

    def copied(self, seconds: float, times: int = 1) -> None:
        """Data was copied to a device; this copy stands for a number of ``times``."""
        if self._role == _SPEAKS:
            self._tally.add_to_step("copy", times * seconds)

    # For changes: what they do, and what they need to know

    @property
    def pauses(self) -> int:
        """How often the training has evaluated and saved."""
        return self._tally.counts["evaluations"] + self._tally.counts["saves"]

    def took_apart(self, seconds: float) -> None:
        """Leave out time that a change took for itself since the last step."""
        if self._role == _SPEAKS:
            self._since = self._since.plus(apart=seconds)

    def changed(self, name: str, proof: str) -> None:
        """An experiment took effect; ``proof`` says how that is known."""
        self._tally.changed[name] = proof

    def cannot(self, name: str, why: str) -> None:
        """An experiment can't be applied."""
        self._tally.failed[name] = why

    # For changes: whose code it is

    def is_users(self, frame: FrameType) -> bool:
        """Whether a frame is code of the user: neither of a package nor of the standard library."""
        return is_users_file(frame.f_code.co_filename)

    def users_place(self, frame: FrameType | None) -> str | None:
        """Return ``file:line`` of the innermost frame that is the user's."""
        return users_place(frame)

    # How it ends

    def end(self) -> None:
        """End the training: report it, end its processes, and leave without cleaning up.

        Only the command's own process is left. Another one may have to return a result to a process
        that waits for it, so it waits here until trainmark ends the whole command.
        """
        speaks = self.speaks
        self._finish(early=True)
        if not self._processes.is_first:
            self._processes.wait_to_be_ended(self._hook, speaks=speaks)
        os.environ.pop(HOOK, None)  # a hook that is loaded now must not report
        leave(self._hook)

    # Private

    def _forked(self) -> None:
        if self._role != _UNDECIDED:
            self._role = _OFF

    def _ended(self, optimizer: object, framework: str, steps: int, examples: int | None) -> Step:
        """Return the step that an optimiser has ended, and begin to add up anew."""
        now = clock()
        self._close_passes()
        since = self._since
        if self._closure_passes:  # they all computed the same batch
            rows = self._closure_since.rows / self._closure_passes
            tokens = self._closure_since.tokens / self._closure_passes
            elements = self._closure_since.elements / self._closure_passes
            odd = self._closure_since.odd
            again = self._closure_since.again
            since = since.plus(rows=rows, tokens=tokens, odd=odd, again=again, elements=elements)
        seconds = now - self.step_began if self.step_began else 0.0
        number = self.trainings.number_of(optimizer)
        step = Step(number, now, seconds, framework, self._loss, steps, examples, since)
        self._since = Since()
        self._predictions.forget()
        self._awaits_loss = False
        self._loss = None
        self.step_began = 0.0
        self._closure_passes = 0
        self._closure_since = Since()
        self._closure_has_loss = False
        return step

    def _lead_another(self, framework: str) -> None:
        """Let another optimiser lead, and count its steps so far."""
        self._has_further_losses = False
        optimizer, waiting = self.trainings.next_leader(self.steps, framework)
        if self._role == _UNDECIDED:
            self._claim(framework)
        if optimizer is not None:
            self.places.made_at("optimizer", optimizer)
        for step in waiting:
            self._step(step)

    def _step(self, step: Step) -> None:
        """Count a step of the optimiser that leads."""
        if self._role == _OFF:
            return
        self.steps += step.steps
        if self._role == _SPEAKS:
            since = step.since
            if step.examples:
                since = since._replace(loaded=step.examples)
            self._count(step, since)

    def _pass_without_gradients(self, frame: FrameType, data: object) -> None:
        """The network computes in training mode, without gradients."""
        self._tally.counts["no_grad_passes"] += 1
        self.is_steady = False
        passes = self._passes = self._passes or Passes(clock())
        self.places.keep("no_grad", frame)
        if not self._sources.current:
            is_other = self._training_data.is_other(data)
            passes.read(data if is_other else None, users_place(frame) or "")
        if not self._sources.current or self._sources.current in self._sources.of_steps:
            return
        if not passes.source:
            passes.source = self._sources.current
            passes.opened = self._opened or passes.began
            passes.place = users_place(frame) or ""
        passes.since = self._since

    def _keep_forward_places(self) -> None:
        """A loss is differentiated; the forward passes before it are those of a step.

        A call that builds a network comes only once, before the first step.
        """
        places = self._forward_places
        if not places:
            return
        if "forward" not in self.places:
            self.places.keep_further("forward", places[-1])
        for place in places:
            if place in self._known_forward_places:
                self.places.keep_further("forward", place)
        self._known_forward_places.update(places)
        self._forward_places = []

    def computed_without_gradients(self, began: float, frame: FrameType) -> None:
        """A framework has computed something for a step without gradients."""
        self._tally.counts["no_grad_passes"] += 1
        self.places.keep("no_grad", frame)
        self._tally.add_to_step("no_grad", clock() - began)

    def _look_for_predictions(self) -> None:
        """A pass with gradients begins; earlier ones may have been an evaluation.

        A script may evaluate with gradients, and in training mode.
        """
        if not self._sources.current:
            self._predictions.passed(clock(), self.steps, sys._getframe(2))
            return
        found = self._predictions.found()
        if found is not None and self._amounts.are_loaded:
            self.places.setdefault("evaluation", found.place)
            self._since = self._since._replace(
                rows=0, tokens=0, odd=0, again=0, elements=0, passes=0
            )
            self._awaits_loss = False
            self._passes_of_step = 0
            self._forward.interrupted()
            self.evaluates_since = found.began
            self._evaluated(found.ended)

    def _close_passes(self) -> None:
        """Forward passes without gradients, if there were any, were a part of the step."""
        if self._passes is not None:
            self._tally.add_to_step("no_grad", clock() - self._passes.began)
            self._passes = None

    def _end_passes(self, evaluates: bool = False) -> None:
        """Decide what forward passes without gradients were.

        They are an evaluation if they read batches from a loader that is not that of the step, or
        a tensor that no step is computed from; else they are a part of the step.

        Args:
            evaluates: whether an evaluation begins, rather than a pass that trains.
        """
        passes = self._passes
        self._passes = None
        if passes is None:
            return
        # At the end of a script, what a function has read is gone.
        are_held_out = passes.are_held_out or passes.place in self._held_out_places
        if passes.source and (evaluates or passes.source != self._sources.current):
            earlier = passes.since
            self._since = self._since.plus(waited=-earlier.waited, loaded=-earlier.loaded)
        elif are_held_out and not passes.source:
            self._held_out_places.add(passes.place)
        else:
            self._passes = passes
            self._close_passes()
            return
        self._end_read_epoch()
        self.evaluates_since = passes.opened
        self.places.setdefault("evaluation", passes.place)

    def _forget_loaded(self) -> None:
        """Forget what loaders delivered, which was for an evaluation."""
        self._since = self._since._replace(waited=0.0, loaded=0)
        self.is_steady = False

    def _claim(self, framework: str) -> None:
        """Decide on this process's role, at its first step."""
        self.framework = framework
        if not self._processes.claims():
            self._role = _FOLLOWS
            return
        self._role = _SPEAKS
        own = hook_of_script()
        self._own_epochs = own is not None
        self._hook = load_hook() if own is None else own
        if self._hook._out is None:
            self._role = _OFF
            return
        self._pace = pace = self._hook._pace
        # The observer paces the training, so the hook's own steps and pauses do nothing.
        self._hook._pace = SimpleNamespace(goes_on=pace.goes_on, stepped=_ignore, pause=_nothing)
        atexit.register(self.guarded(self._finish))
        util: Any = sys.modules.get("multiprocessing.util")
        if util is not None:  # its processes end without calling what atexit knows
            util.Finalize(None, self.guarded(self._finish), exitpriority=0)
        if self._loader_place:
            self.places.setdefault("loader", self._loader_place)
        self._hook._synchronize()

    def _count(self, step: Step, since: Since) -> None:
        totals = self._tally.seconds
        steps = step.steps
        loss = step.loss
        now = step.ended
        is_first = not self._mark
        self._sources.stepped()
        self._evaluators.forget()
        # Without a loader, a part of the first step may have passed unseen.
        if since.loaded or not is_first:
            self._amounts.add(since, steps)
        is_read = isinstance(loss, float)
        if is_read:
            self._epoch.loss += steps * loss
            self._epoch.losses += steps
        if loss is not None and (self.steps <= _MOST_LOSSES or self.steps % _THEN_EVERY == 0):
            of_steps = loss if isinstance(loss, list) else [loss] * steps
            if is_read:
                self._losses += of_steps
            else:
                self._unread += [(step.framework, each) for each in of_steps]
        if is_first:  # its duration is unknown
            self._starts.ends()
            now = clock()  # our own start is no part of the second one
            self._forward.stepped(0.0)
            self._tally.stepped(counts=False)
            self._report_at = now
            self._first_steps = steps
            if not self._own_epochs:
                self._hook.begin()
            self._pace.goes_on()
            # The script's own hook has begun a turn.
            if self._pace._turns is not None and not self._pace._over:
                self._begin_turn()
        else:
            seconds = now - self._mark - since.apart
            self._epoch.apart += self._epoch.after_step
            self._epoch.after_step = 0.0
            self._forward.stepped(seconds)
            self._tally.stepped(counts=True)
            self._epoch.amounts.add(since, steps)
            if not self._first_turn.searches:
                totals["seconds"] += seconds
                if since.elements:
                    self._elements = since.elements
                amount = self._elements or since.loaded or since.rows
                self._times.add(self.steps, seconds / steps, amount / steps)
                self._memory.stepped(self.steps, now)
            if "loader_wait" in totals:
                totals["loader_wait"] += since.waited
            self._epoch.waited += since.waited
            if step.seconds:
                self._tally.add("optimizer", step.seconds)
            self._spend_turn(step, seconds, since.apart)
        self._passes_of_step = 0
        self._mark = now
        are_known = self._amounts.are_loaded and self.steps >= FEW
        self._looks_in -= 1
        self.is_steady = are_known and self._looks_in > 0
        if self._looks_in <= 0:
            self._looks_in = next(self._looks)
        if self._due is not None:
            self._due = now
            self._end_due_epoch()

    def _spend_turn(self, step: Step, seconds: float, apart: float) -> None:
        """Count a step towards the search for threads or, after that, towards the turn.

        Args:
            seconds: its duration.
            apart: seconds of evaluations since the step before, which don't count.
        """
        if self._first_turn.searches:
            found = self._first_turn.stepped(seconds)
            if found is not None:
                self._hook._send({"event": "threads", "t": step.ended, **found})
            if not self._first_turn.searches:
                self._pace.goes_on()
        elif self._pace._turns is not None:
            self._pace._mark += apart
            self._pace._steps += step.steps - 1
            if hasattr(self._pace, "_passes"):  # older copies of the hook lack it
                self._pace._passes += self._passes_of_step
            self._pace.stepped(step.ended, self._hook.FEWEST_STEPS)

    def _device_bytes(self) -> int | None:
        """Return how many bytes the framework has allocated on the device, if that is known."""
        read = self.device_bytes.get(self.framework)
        return None if read is None else read()

    def _take_turns(self) -> None:
        """Pause if the turn is over; report now and then."""
        if self._pace._turns is not None and self._pace._over:
            self._report()
            self._pace.pause()
            self._mark = clock()
            if self._pace._target < 0:
                self._ask_to_end()
            self._begin_turn()
            self._mark = clock()
        elif self._mark >= self._report_at:
            self._report(reads=False)

    def _begin_turn(self) -> None:
        """A turn begins; in the first one, the best number of CPU threads is found."""
        settable = None if self._processes.has_ranks else self.threads.get(self.framework)
        device = None
        if settable is not None:
            device = self.describe[self.framework]().get("device")
        self._first_turn.begin(settable, device, self._processes.last_step)

    def _trains_again(self, now: float) -> None:
        """An evaluation has ended; only the loader knows when."""
        later = [at for at in (self._opened, self._fetch) if (self.evaluates_since or now) < at]
        self._evaluated(later[0] if later else now)

    def _evaluated(
        self, end: float, loss: float | None = None, accuracy: float | None = None
    ) -> None:
        """An evaluation has ended."""
        start = self.evaluates_since or end
        self.evaluates_since = None
        self._tally.counts["evaluations"] += 1
        self._tally.add("evaluation", end - start)
        if self.steps != self._evaluated_at:  # several in a row are alike
            self._evaluates_often = self.steps - self._evaluated_at <= _OFTEN
        self._evaluated_at = self.steps
        if self._evaluates_often:
            self._tally.add_to_step("evaluation_in_steps", end - start)
        else:
            self._since = self._since.plus(apart=end - start)
            if self._epoch.amounts.steps:
                self._epoch.after_step += end - start
            elif self._tested_at is not None and not self._own_epochs:
                self._hook._send({**self._hook._figures(loss, accuracy), "event": "test", "t": end})
                self._told_until = end
        self._tested_at = None

    def _end_read_epoch(self) -> None:
        """End the epoch of a loader that was read to its end."""
        if 0 <= self._last_read < self.steps:
            self._last_read = -1
            self._due = self._due or self._mark
        self._end_due_epoch()

    def _end_due_epoch(self) -> None:
        due = self._due
        self._due = None
        if due is not None and self._epoch.amounts.steps and self._role == _SPEAKS:
            self._epochs += 1
            self._end_epoch(due)

    def _end_epoch(
        self, ended: float, loss: float | None = None, accuracy: float | None = None
    ) -> None:
        self._read()
        epoch = self._epoch
        self._epoch = _Epoch()
        hook = self._hook
        if loss is None and epoch.losses:
            loss = epoch.loss / epoch.losses
        # Steps that had to wait may be older than what was reported already.
        if self._own_epochs or ended < self._told_until:
            return
        self._told_until = ended
        apart = epoch.apart + (epoch.after_step if ended > self._mark else 0.0)
        if apart:
            hook._send({"event": "evaluated", "t": ended, "seconds": apart})
        if "loader_wait" in self._tally.seconds:
            hook._waited = epoch.waited
        # The first step is left out, since its batch may have been loaded unseen.
        examples = epoch.amounts.examples()
        hook.epoch(
            loss,
            accuracy,
            examples=round(examples) if examples else None,
            steps=epoch.amounts.steps,
            ended=ended,
        )
        self._tested_at = ended

    def _finish(self, early: bool = False) -> None:
        if self._role != _SPEAKS:
            return
        if self._own_epochs and self._hook._epochs == 0:
            self._own_epochs = False
        if not early:
            self.look_for_last_step()
        while not early and self.trainings.end():
            self._lead_another(self.framework)
        if self.steps > self._first_steps:
            self._tally.seconds["seconds"] += self._waited_for_steps
            self._mark += self._waited_for_steps
        self._end_passes(evaluates=True)
        if self.evaluates_since is not None:
            self._trains_again(clock())
        self._end_read_epoch()
        if self._epoch.amounts.steps and not self._is_cut:
            self._end_epoch(self._mark)
        self._report(early=early)
        self._role = _OFF

    def _read(self) -> None:
        """Read the losses that are kept by reference."""
        unread = self._unread
        self._unread = []
        for framework, losses in itertools.groupby(unread, key=operator.itemgetter(0)):
            found = self.read_losses[framework]([loss for _, loss in losses])
            self._losses += found
            self._epoch.loss += sum(found)
            self._epoch.losses += len(found)

    def _report(self, *, reads: bool = True, early: bool = False) -> None:
        """Report everything so far; losses only if they may be read."""
        if reads:
            self._read()
        losses = self._losses
        self._losses = []
        now = clock()
        self._processes.goes_on()
        # The time between reports grows, since a long training must not send too much.
        self._report_at = now + 1.0 + self._tally.seconds["seconds"] / 1000
        try:
            further = self.also_report(reads)
        # What others add must not cost the observer's own report.
        except Exception as error:  # noqa: BLE001
            further = []
            failure = f"not also_report: {type(error).__name__}: {error}"[:200]
            if failure not in self.injected:
                self.injected.append(failure)
        for each in further:
            self._hook._send({**each, "t": now})
        self._hook._send({"event": "step_times", "t": now, "parts": self._times.parts()})
        self._hook._send({"event": "step_memory", "t": now, "parts": self._memory.readings()})
        versions = getattr(self._hook, "_versions", dict)  # older copies of the hook lack it
        message: dict[str, Any] = {
            "event": "observed",
            "t": now,
            "ended_early": early,
            "packages": versions(),
        }
        while True:
            part = losses[:_LOSSES_OF_LINE]
            losses = losses[_LOSSES_OF_LINE:]
            numbers = [self._hook._number(each) for each in part]
            self._hook._send({**message, **self.figures(), "losses": numbers})
            if not losses:
                return

    def figures(self) -> dict[str, Any]:
        """Return what was observed so far, as it is reported."""
        steps = self.steps
        untimed = self._first_steps + self._first_turn.steps
        amounts = self._amounts
        seconds = self._tally.seconds["seconds"] * (steps - 1) / max(steps - untimed, 1)
        examples = amounts.examples()
        unknown: dict[str, str] = {}
        unseen: dict[str, None] = {}
        why = amounts.unknown()
        if why:
            why = self.examples_unknown or why
            unknown["examples_per_step"] = why
        if self.framework in self.networks_unseen and not self._tally.counts["evaluations"]:
            unseen["evaluations"] = None
            unknown["evaluations"] = "no call of the network was seen in its steps"
        why_not_judged = why_unseen(self.trainings, amounts, steps)
        if why_not_judged:
            unknown["learning"] = why_not_judged
        epochs = self._hook._epochs if self._own_epochs else self._epochs
        return {
            "framework": self.framework,
            "injected": self.injected[:30],
            "steps": steps,
            "examples_per_step": examples and examples / amounts.steps,
            "tokens_per_step": amounts.tokens / max(amounts.steps, 1) or None,
            "epochs": epochs if len(self.trainings.starts) == 1 else None,
            "planned_steps": self.planned_steps if len(self.trainings.starts) == 1 else None,
            "unknown": unknown,
            "own_epochs": self._own_epochs,
            "training_starts": self.trainings.starts[:_MOST_TRAININGS],
            "seconds": seconds,
            "places": {name: place[:100] for name, place in self.places.items() if place},
            **self._tally.figures(),
            **unseen,
            "forward_seconds": self._forward.seconds(steps - self._first_steps),
            **self.describe.get(self.framework, dict)(),
        }

    def _ask_to_end(self) -> None:
        """End now or, if other processes train, all after the next step; the slices are enough."""
        self._is_cut = True
        if self._processes.tell_to_end(self.steps + 1):
            self.end()


class _Epoch:
    """What an epoch has so far.

    ``losses`` is the number of those whose sum is ``loss``. Evaluations took the seconds ``apart``
    before its last step, and ``after_step`` since then, which may be no part of the epoch.
    """

    losses = 0
    loss = apart = after_step = waited = 0.0

    def __init__(self) -> None:
        self.amounts = Amounts()
