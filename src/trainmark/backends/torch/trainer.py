"""Code shared by the styles: the network, its weights, evaluation, and reading results."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trainmark.backends.base import HITS, L2_LOSS, LOSS, Evaluation, Job, SplitName, Steps
from trainmark.backends.engines import torch as engines
from trainmark.backends.parts import loss_left
from trainmark.backends.stepwise import Arrays, State
from trainmark.backends.torch import losses, network, optimizers, precision
from trainmark.backends.torch.forward_pass import ForwardPass
from trainmark.data.dataset import Split
from trainmark.workload.losses import sums
from trainmark.workload.model import LayerPlan, Model, Weights
from trainmark.workload.optimizers import slots_of, weight_decay_of
from trainmark.workload.pixels import prepare


def random_order(count: int) -> NDArray[np.int64]:
    """Return the numbers below ``count`` in a random order, drawn by PyTorch."""
    order: NDArray[np.int64] = torch.randperm(count).numpy()
    return order


class TorchTrainer:
    """The style-independent part of a trainer."""

    _quick = False  # whether to clip with ``foreach``
    _copies = 1  # copies of the network, over which gradients are averaged

    def __init__(self, job: Job) -> None:
        options = job.options
        self._workload = job.workload
        self._model = job.model
        self._data = job.data
        self._precision = options.precision
        arithmetic = precision.ARITHMETIC[options.precision]
        self._device = engines.prepare(options, tf32=arithmetic.tf32)
        torch.manual_seed(options.seed)
        self._dtype = arithmetic.parameters
        self._network = network.build(job.model, self._layers(job.model)).to(
            self._device, self._dtype
        )
        loss = loss_left(job.workload, options)
        self._loss = losses.build(loss, sequences=job.workload.is_text)
        self._sums = sums(loss)
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=arithmetic.scales_loss)
        weights = network.parameters(self._network, job.model)
        spec = job.workload.optimizer
        self._l2 = [
            (factor, weights[key]) for key, factor in job.model.l2.items() if key in weights
        ]
        self._decays = {
            weight: weight_decay_of(spec, key, weight.ndim) for key, weight in weights.items()
        }
        self._keeps_gradients = options.keeps_gradients
        self._unclipped = list[Tensor]()
        self._pass = ForwardPass(
            self._network,
            self._loss,
            self._dtype,
            self._precision,
            self._device,
            counts_hits=job.workload.metrics.train == "running",
        )
        self._without = options.without
        self._optimizer: torch.optim.Optimizer
        self._step = 0
        self._parameters = list(self._network.parameters())
        self._average = [parameter.detach().clone() for parameter in self._parameters]
        self._first_random_states: list[Tensor] = []
        self._first_scale: dict[str, Any] = {}

    def restart(self, weights: Weights) -> None:
        """Start again from these weights, with the random numbers of a new trainer."""
        engines.set_random_states(self._device, self._first_random_states)
        if self._scaler.is_enabled():
            self._scaler.load_state_dict(self._first_scale)
        self.load(weights)

    def load(self, weights: Weights) -> None:
        """Set the weights; the styles also set their optimiser."""
        if not self._first_random_states:
            self._first_random_states = engines.random_states(self._device)
            self._first_scale = self._scaler.state_dict()
        network.write(self._network, self._model, weights)
        _copy(self._parameters, self._average)

    def threads(self) -> int:
        """Return the number of CPU threads in use."""
        return torch.get_num_threads()

    def set_threads(self, number: int) -> None:
        """Compute with this many CPU threads from the next step on."""
        engines.set_threads(number)

    def weights(self) -> Weights:
        """Return a copy of the weights on the host."""
        return network.read(self._network, self._model, dtype=torch.float32)

    def averaged(self) -> Weights:
        """Return a copy of their average on the host, or of the weights if there is none."""
        with self._average_in_place():
            return self.weights()

    def synchronize(self) -> None:
        """Wait for the device."""
        engines.synchronize(self._device)

    def read(self, results: Any) -> Steps:
        """Read results ``[steps, 3]`` to the host."""
        return Steps.from_rows(results.cpu().double().numpy(), has_l2=bool(self._model.l2))

    def evaluate(self, split: SplitName, examples: NDArray[np.int64] | None = None) -> Evaluation:
        """Evaluate a split in large batches, with the averaged weights if there is an average."""
        part: Split = getattr(self._data, split)
        examples = np.arange(len(part)) if examples is None else examples
        with self._average_in_place():
            loss, hits = self._judge(self._network, part, examples)
        return self._evaluation(part, len(examples), loss, hits)

    def _evaluation(self, part: Split, examples: int, loss: float, hits: float) -> Evaluation:
        """Return means of sums over ``examples``."""
        return Evaluation(loss / examples, hits / (examples * math.prod(part.labels.shape[1:])))

    def _layers(self, model: Model) -> Sequence[LayerPlan]:
        """Return the layers trained here: all layers."""
        return model.layers

    def _judge(
        self, whole: nn.Module, part: Split, examples: NDArray[np.int64]
    ) -> tuple[float, int]:
        """Return summed loss and hits of the ``whole`` network on examples, without dropout."""
        whole.eval()
        loss = 0.0
        hits = 0
        size = self._workload.evaluation_batch
        with torch.no_grad(), precision.autocast(self._precision, self._device):
            for start in range(0, len(examples), size):
                some = examples[start : start + size]
                y = torch.from_numpy(part.labels[some].astype(np.int64)).to(self._device)
                outputs = whole(self._input(part.images[some])).to(self._dtype)
                loss += float(self._loss(outputs, y)) * len(y)
                hits += int((outputs.argmax(dim=-1) == y).sum())
        whole.train()
        return loss, hits

    def outputs(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the outputs of the last layer, without dropout."""
        self._network.eval()
        with torch.no_grad(), precision.autocast(self._precision, self._device):
            outputs: NDArray[np.float64] = self._network(self._input(images)).cpu().double().numpy()
        self._network.train()
        return outputs

    def _input(self, images: NDArray[np.uint8]) -> Tensor:
        """Convert stored images to network input, undistorted."""
        host_dtype = np.float64 if self._dtype == torch.float64 else np.float32
        x = torch.from_numpy(prepare(self._workload.input, images, host_dtype)).to(self._device)
        return x if self._workload.is_text else x.permute(0, 3, 1, 2)

    def set_state(self, state: State) -> None:
        """Set weights, optimiser and average, in place."""
        spec = self._workload.optimizer
        self.load(dict(state.weights))
        for slot, arrays in state.slots.items():
            scale = optimizers.scale_of(spec, slot)
            of = functools.partial(optimizers.buffer, self._optimizer, spec, slot)
            network.write(
                self._network,
                self._model,
                {name: value / scale for name, value in arrays.items()},
                of,
            )
        if state.average:
            network.write(self._network, self._model, state.average, self._average_of)
        optimizers.set_step(self._optimizer, state.step)
        self._continue_at(state.step)

    def state(self) -> State:
        """Copy weights, optimiser and average to the host."""
        spec = self._workload.optimizer
        slots = {}
        for slot in slots_of(spec):
            of = functools.partial(optimizers.buffer, self._optimizer, spec, slot)
            found = network.read(self._network, self._model, of)
            scale = optimizers.scale_of(spec, slot)
            slots[slot] = {name: value * scale for name, value in found.items()}
        average = {}
        if self._workload.weight_average:
            average = network.read(self._network, self._model, self._average_of)
        return State(network.read(self._network, self._model), slots, average, self._step)

    def gradients(self) -> Arrays:
        """Copy the gradients of the last step to the host."""
        found = dict(zip(self._parameters, self._last_gradients(), strict=True))
        return network.read(self._network, self._model, found.__getitem__)

    def _last_gradients(self) -> list[Tensor]:
        """Return the gradients of the last step, before clipping.

        They are in the order of the parameters.
        """
        return self._unclipped or [cast(Tensor, parameter.grad) for parameter in self._parameters]

    def activations(self, examples: NDArray[np.int64], *, training: bool) -> Arrays:
        """Run the layers on training examples."""
        self._network.train(training)
        with (
            torch.no_grad(),
            self._buffers_kept(),
            precision.autocast(self._precision, self._device),
        ):
            found = network.outputs(
                self._network, self._model, self._inputs(examples).to(self._device)
            )
        self._network.train()
        return {name: value.cpu().double().numpy() for name, value in found.items()}

    def _continue_at(self, step: int) -> None:
        """Set the counters of the styles to step ``step``."""
        self._step = step

    def _inputs(self, examples: NDArray[np.int64]) -> Tensor:
        """Return training examples as network input."""
        raise NotImplementedError

    def _average_of(self, parameter: nn.Parameter) -> Tensor:
        return next(
            mine
            for each, mine in zip(self._parameters, self._average, strict=True)
            if each is parameter
        )

    def settings(self) -> dict[str, Any]:
        """Return PyTorch's current settings."""
        return {**engines.settings(), "cudnn_benchmark": torch.backends.cudnn.benchmark}

    def device_peak_bytes(self) -> int | None:
        """Return the peak of the memory that PyTorch allocated on an accelerator."""
        return engines.peak_bytes(self._device)

    def _learn(self, x: Tensor, y: Tensor, row: Tensor) -> None:
        """Compute forward and backward pass and update on one batch.

        Writes loss, L2 loss and hits to ``row``, on the device.
        """
        loss, l2_loss, hits = self._differentiate(x, y)
        if "optimizer" not in self._without:
            self._clip()
            self._scaler.step(self._optimizer)
            self._scaler.update()
        row[LOSS] = loss.detach()
        if l2_loss is not None:
            row[L2_LOSS] = l2_loss.detach()
        if hits is not None:
            row[HITS] = hits

    def _clip(self) -> None:
        """Clip the gradients to the workload's norm, after undoing loss scaling."""
        norm = self._workload.optimizer.clip_norm
        if norm is None:
            return
        self._scaler.unscale_(self._optimizer)
        if self._keeps_gradients:
            self._unclipped = [
                cast(Tensor, parameter.grad).clone() for parameter in self._parameters
            ]
        nn.utils.clip_grad_norm_(self._parameters, norm, foreach=self._quick or None)

    def _differentiate(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Compute gradients on one batch.

        Returns the total loss, its L2 part, and the hits if counted.
        """
        loss, hits = self._forward(x, y)
        l2_loss = self._l2_loss()
        total = loss * (y.numel() * self._copies) if self._sums else loss
        if l2_loss is not None:
            loss = loss + l2_loss
            total = total + l2_loss
        self._scaler.scale(total).backward()
        return loss, l2_loss, hits

    def _forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the loss of a batch, and its hits if they are counted."""
        return self._pass(x, y)

    def _update_average(self, share: Tensor | float) -> None:
        """Move the average towards the weights by ``share`` of the distance."""
        with torch.no_grad():
            for average, parameter in zip(self._average, self._parameters, strict=True):
                average.lerp_(parameter, share)

    def _l2_loss(self) -> Tensor | None:
        if not self._l2:
            return None
        return torch.stack(
            [0.5 * factor * kernel.square().sum() for factor, kernel in self._l2]
        ).sum()

    @contextlib.contextmanager
    def _buffers_kept(self) -> Iterator[None]:
        """Restore the running averages of batch norms afterwards."""
        before = [buffer.clone() for buffer in self._network.buffers()]
        try:
            yield
        finally:
            _copy(before, self._network.buffers())

    @contextlib.contextmanager
    def _average_in_place(self) -> Iterator[None]:
        """Use the average, if there is one, instead of the weights."""
        replaced = self._parameters if self._workload.weight_average else []
        trained = [parameter.detach().clone() for parameter in replaced]
        _copy(self._average, replaced)
        try:
            yield
        finally:
            _copy(trained, replaced)


@torch.no_grad()
def _copy(values: Iterable[Tensor], places: Iterable[Tensor]) -> None:
    for place, value in zip(places, values, strict=False):
        place.copy_(value)
