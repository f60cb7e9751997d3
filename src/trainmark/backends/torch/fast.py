"""``fast``: the dataset is on the device, and on CUDA a step is one graph.

Nothing is fetched inside an epoch.

The optimiser is PyTorch's fused one, images are stored channels last if that is faster, and on a
CPU denormal numbers are flushed to zero. On CUDA, a step is captured into a graph for each batch
size and replayed: the place in the epoch is kept on the device, so the host only launches the graph
again. Where it was measured to be faster, the forward and backward pass are compiled first
(:mod:`trainmark.backends.torch.choices`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainmark.backends.base import EpochPlan, Job
from trainmark.backends.engines import torch as engines
from trainmark.backends.examination import first_line
from trainmark.backends.torch import optimizers, precision
from trainmark.backends.torch.choices import Choice, choose
from trainmark.backends.torch.pixels import augment, transform
from trainmark.backends.torch.trainer import TorchTrainer, random_order
from trainmark.workload.losses import TwoStageCrossEntropy
from trainmark.workload.model import Weights
from trainmark.workload.optimizers import learning_rate_at
from trainmark.workload.pixels import Input
from trainmark.workload.tokens import Tokens

GRAPHS_VARIABLE = "TRAINMARK_CUDA_GRAPHS"
"""Set to ``0``, trains without CUDA graphs, to measure their effect."""
_WARM_UP_STEPS = 3  # they make compiled code, workspaces and optimiser state


class Place:
    """The order of an epoch's examples, the results of its steps, and the current step.

    All are on the device.

    Captured steps read and write these buffers, so they stay at the same address for the lifetime
    of the graphs.
    """

    def __init__(self, steps: int, examples: int, dtype: torch.dtype, device: torch.device) -> None:
        self.order = torch.zeros(examples, dtype=torch.int64, device=device)
        self.augmented = torch.zeros(examples, 5, dtype=torch.int64, device=device)
        self.rows = torch.zeros(steps, 3, dtype=dtype, device=device)
        self.example = torch.zeros((), dtype=torch.int64, device=device)
        self.step = torch.zeros(1, dtype=torch.int64, device=device)

    def holds(self, plan: EpochPlan) -> bool:
        """Whether an epoch like ``plan`` fits."""
        return len(plan.sizes) <= len(self.rows) and sum(plan.sizes) <= len(self.order)

    def go_to_start(self) -> None:
        """Return to the first step."""
        self.example.zero_()
        self.step.zero_()


class TorchFastTrainer(TorchTrainer):
    """Keeps data, results and the place in the epoch on the device."""

    def __init__(self, job: Job) -> None:
        # Second moments of weights that have stopped learning become denormal numbers, which are
        # many times slower on a CPU; XLA and TensorFlow flush them too. A loss in two stages needs
        # probabilities this small, so keeps them.
        arithmetic = precision.ARITHMETIC[job.options.precision]
        two_stages = isinstance(job.workload.loss, TwoStageCrossEntropy)
        self._flushes = job.options.device == "cpu" and arithmetic.flushes and not two_stages
        # PyTorch's other threads start here, and keep the setting
        with precision.denormals_flushed(self._flushes):
            super().__init__(job)
            self._make(job)

    def _make(self, job: Job) -> None:
        alone = job.options.layout is None  # a captured step can't wait for other ranks
        able = alone and not self._scaler.is_enabled()  # it can't wait for a scaler, either
        wanted = os.environ.get(GRAPHS_VARIABLE, "1") != "0"
        self._captures = able and wanted and engines.captures(self._device)
        self._choice = choose(job.workload.name, self._precision, captures=self._captures)
        if not alone:  # the network of a rank is wrapped or cut
            self._choice = Choice("eager", "default")
        self._compiles = self._choice.step == "compiled"
        self._compiled_pass: Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]] | None = None
        self._failures: dict[str, str] = {}
        self._format = _memory_format(job)
        self._network.to(memory_format=self._format)
        self._images, self._labels = self._on_device(job)
        self._quick = self._device.type != "mps"
        spec = job.workload.optimizer
        self._optimizer = optimizers.build(
            spec, self._network, decays=self._decays, quick=self._quick, capturable=self._captures
        )
        self._rate = spec.learning_rate
        self._updates = torch.zeros((), dtype=self._dtype, device=self._device)
        self._graphs: dict[int, engines.Graph] = {}
        self._captured_gradients: dict[int, list[Tensor]] = {}
        self._place = Place(0, 0, self._dtype, self._device)
        self._plan = EpochPlan((), None)
        self._steps_of_epoch = self._examples_of_epoch = 0

    def load(self, weights: Weights) -> None:
        """Set the weights and reset the optimiser in place, so that captured steps stay valid."""
        super().load(weights)
        optimizers.reset(self._optimizer)
        self._updates.zero_()
        self._step = 0

    def compile(self, plan: EpochPlan) -> bool:
        """Compile and capture a step for each batch size of the plan; False if it does neither.

        If one of them fails, the training continues without it, and :meth:`settings` has the
        reason.
        """
        if not (self._compiles or self._captures):
            return False
        self.begin_epoch(plan)
        with precision.denormals_flushed(self._flushes), self._state_kept():
            while not self._is_ready(plan.sizes):
                pass
        return True

    def begin_epoch(self, plan: EpochPlan) -> None:
        """Send the order of the epoch to the device."""
        if not self._place.holds(plan):
            self._graphs.clear()
            self._place = Place(len(plan.sizes), sum(plan.sizes), self._dtype, self._device)
        self._plan = plan
        self._steps_of_epoch = self._examples_of_epoch = 0
        self._place.go_to_start()
        order = plan.drawn(self._workload.batches, len(self._labels), random_order)
        if plan.augmented is not None:
            self._place.augmented[: sum(plan.sizes)].copy_(torch.from_numpy(plan.augmented))
            if order is None:  # every step takes everything
                order = np.tile(np.arange(len(self._labels)), len(plan.sizes))
        if order is not None:
            self._place.order[: sum(plan.sizes)].copy_(torch.from_numpy(order[: sum(plan.sizes)]))

    def train(self, steps: int, tick: Callable[[], None]) -> Tensor:
        """Queue steps; results stay on the device."""
        with precision.denormals_flushed(self._flushes):
            return self._train(steps, tick)

    def _train(self, steps: int, tick: Callable[[], None]) -> Tensor:
        first = self._steps_of_epoch
        for _ in range(steps):
            size = self._plan.sizes[self._steps_of_epoch]
            self._follow_rate()
            if self._graphs:
                self._graphs[size].replay()
            else:
                rows = slice(self._examples_of_epoch, self._examples_of_epoch + size)
                self._step_on(*self._batch(size, rows), self._place.rows[self._steps_of_epoch])
            self._steps_of_epoch += 1
            self._examples_of_epoch += size
            self._step += 1
            tick()
        # The next epoch overwrites the rows, so the result is a copy.
        return self._place.rows[first : self._steps_of_epoch].clone()

    def _last_gradients(self) -> list[Tensor]:
        """Return the gradients of the last step; each graph writes its own."""
        if self._graphs:
            return self._captured_gradients[self._plan.sizes[self._steps_of_epoch - 1]]
        return super()._last_gradients()

    def _continue_at(self, step: int) -> None:
        super()._continue_at(step)
        self._updates.fill_(step)

    def _inputs(self, examples: NDArray[np.int64]) -> Tensor:
        return self._images[examples]

    def settings(self) -> dict[str, Any]:
        """Return PyTorch's settings, and those of this style."""
        layout = "channels_last" if self._format == torch.channels_last else "contiguous"
        return {
            **super().settings(),
            "memory_format": layout,
            "denormals_flushed": self._flushes,
            "cuda_graphs": len(self._graphs),
            "step": "eager" if self._compiled_pass is None else "compiled",
            "step_chosen_by": self._choice.by,
            **self._of_compiling(),
            **self._failures,
        }

    def _of_compiling(self) -> dict[str, Any]:
        if self._compiled_pass is None:
            return {}
        from trainmark.backends.torch.compiling import cache_state

        return {"compile_cache": cache_state(), "compiled_gain": self._choice.gain}

    def _on_device(self, job: Job) -> tuple[Tensor, Tensor]:
        """Return all training examples; those of a text are views of its tokens."""
        train = job.data.train
        spec = job.workload.input
        if isinstance(spec, Tokens):
            tokens = torch.tensor(train.tokens, dtype=torch.int64, device=self._device)
            return tokens[:-1].unfold(0, spec.length, 1), tokens[1:].unfold(0, spec.length, 1)
        images = torch.tensor(train.images, device=self._device)
        labels = torch.tensor(train.labels, dtype=torch.int64, device=self._device)
        return images if job.distorts else self._prepared(images), labels

    def _prepared(self, images: Tensor) -> Tensor:
        """Convert images of bytes to network input."""
        spec = self._workload.input
        assert isinstance(spec, Input)
        return transform(spec, images, self._dtype).contiguous(memory_format=self._format)

    def _batch(self, size: int, places: slice | Tensor) -> tuple[Tensor, Tensor]:
        """Return the examples of the next step.

        These are all examples, or those of these places in the epoch.
        """
        spec = self._workload.augmented_input if self._plan.augmented is not None else None
        if "input" in self._without or (self._plan.whole and spec is None):
            x = self._images[:size]
            y = self._labels[:size]
        else:
            taken = self._place.order[places]
            y = self._labels.index_select(0, taken)
            if spec is not None:
                x = augment(spec, self._images, self._place.augmented[places], taken)
                return x.contiguous(memory_format=self._format), y
            # The faster index_select would not keep the channels last.
            quick = self._format == torch.contiguous_format
            x = self._images.index_select(0, taken) if quick else self._images[taken]
        return (x if self._workload.input.distortions is None else self._prepared(x)), y

    def _step_on(self, x: Tensor, y: Tensor, row: Tensor) -> None:
        """Run one training step, and write its results to ``row``."""
        for parameter in self._parameters:  # ``zero_grad`` takes longer
            parameter.grad = None
        self._learn(x, y, row)
        if self._workload.weight_average is not None and "optimizer" not in self._without:
            decay = ((1 + self._updates) / (10 + self._updates)).clamp(
                max=self._workload.weight_average.decay
            )
            self._update_average(1 - decay)
            self._updates.add_(1)

    def _forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
        return self._pass(x, y) if self._compiled_pass is None else self._compiled_pass(x, y)

    def _is_ready(self, sizes: Iterable[int]) -> bool:
        """Compile and capture; if that fails, leave out what failed and return False."""
        try:
            self._compile_pass()
            for size in dict.fromkeys(sizes):
                if size in self._graphs:
                    continue
                self._warm_up(size)
                if self._captures:
                    self._graphs[size] = self._capture(size)
        except torch.OutOfMemoryError:  # an eager step needs as much memory
            raise
        except Exception as error:
            if not (self._compiles or self._captures):
                raise
            self._leave_out(error)
            return False
        return True

    def _leave_out(self, error: Exception) -> None:
        """Continue without compiling after an error; if nothing is compiled, without capturing."""
        # The compiler wraps errors in one without the reason.
        cause = getattr(error, "inner_exception", error)
        reason = f"{type(cause).__name__}: {first_line(cause)}"
        if self._compiles:
            self._failures["not_compiled"] = reason
            self._compiles = False
            self._compiled_pass = None
        else:
            self._failures["not_captured"] = reason
            self._captures = False
        self._graphs.clear()
        self._captured_gradients.clear()
        self._optimizer.zero_grad(set_to_none=True)

    def _compile_pass(self) -> None:
        """Let PyTorch compile the forward and backward pass, separately for each batch size."""
        if self._compiles and self._compiled_pass is None:
            from trainmark.backends.torch.compiling import compiled, random_options

            # With dynamic shapes, the code for a smaller last batch would be slower, and also used
            # for all other sizes.
            options = random_options(self._workload)
            self._compiled_pass = compiled(
                self._pass.__call__, self._device, dynamic=False, **options
            )

    @contextlib.contextmanager
    def _state_kept(self) -> Iterator[None]:
        """Restore everything that a step changes afterwards, since warming up really trains."""
        # The copies are detached: a clone with a gradient would keep its autograd node on this
        # stream, which a capture can't wait for.
        before = {id(tensor): tensor.detach().clone() for tensor in self._changed_by_a_step()}
        with engines.random_state_kept(self._device):
            yield
        with torch.no_grad():
            for tensor in self._changed_by_a_step():
                kept = before.get(id(tensor))
                # State that the optimiser has made meanwhile starts at zero.
                tensor.zero_() if kept is None else tensor.copy_(kept)

    def _warm_up(self, size: int) -> None:
        """Train a few steps, on another stream where steps are captured."""
        with engines.side_stream(self._device):
            for _ in range(_WARM_UP_STEPS):
                self._place.go_to_start()
                self._step_here(size)
            self._place.go_to_start()
        self._optimizer.zero_grad(set_to_none=True)

    def _capture(self, size: int) -> engines.Graph:
        graph = engines.capture(partial(self._step_here, size), self._device)
        self._captured_gradients[size] = super()._last_gradients()
        return graph

    def _step_here(self, size: int) -> None:
        """Run the step at the current place in the epoch, and advance the place.

        Nothing is read from the host.
        """
        place = self._place
        # They are created inside, so that they are in the graph's memory, for its lifetime.
        row = torch.zeros(3, dtype=self._dtype, device=self._device)
        places = place.example + torch.arange(size, device=self._device)
        self._step_on(*self._batch(size, places), row)
        place.rows.index_copy_(0, place.step, row.unsqueeze(0))
        place.step.add_(1)
        place.example.add_(size)

    def _changed_by_a_step(self) -> Iterator[Tensor]:
        place = self._place
        yield from (*self._parameters, *self._average, *self._network.buffers())
        yield from (self._updates, place.rows, place.example, place.step)
        for state in self._optimizer.state.values():
            yield from (value for value in state.values() if isinstance(value, Tensor))

    def _follow_rate(self) -> None:
        """Set the learning rate of this step."""
        rate = learning_rate_at(self._workload.optimizer, self._step)
        if rate != self._rate:
            self._rate = rate
            optimizers.set_rate(self._optimizer, rate)


def _memory_format(job: Job) -> torch.memory_format:
    """Return channels last for convolutions on a CPU and on tensor cores (docs/results/styles)."""
    options = job.options
    # The stages of a pipeline pass on contiguous images.
    in_stages = options.layout is not None and options.layout.pipeline > 1
    pays = options.device == "cpu" or precision.ARITHMETIC[options.precision].tensor_cores
    if job.model.convolves and pays and not in_stages:
        return torch.channels_last
    return torch.contiguous_format
