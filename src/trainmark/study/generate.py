"""Continue a text with a backend and the weights of a record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainmark.backends.numpy import layers
from trainmark.data.catalog import find
from trainmark.errors import PredictionFailed, UsageError
from trainmark.execute.protocol.answers import Answer, Continued
from trainmark.execute.protocol.worker_commands import Generate
from trainmark.record import weights as weight_files
from trainmark.study.observer import OnProgress, ignore_progress
from trainmark.study.predict import TrainedModel
from trainmark.workload.model import lay_out


@dataclass(frozen=True)
class Continuation:
    """A prompt and its continuation.

    Args:
        probabilities: of each character as the first one after the prompt, ``[characters]``.
        characters: the vocabulary.
    """

    prompt: str
    text: str
    probabilities: NDArray[np.float64]
    characters: str


def characters_of(model: TrainedModel) -> str:
    """Return the vocabulary; raises UsageError if the tokens aren't characters."""
    dataset = model.chosen.scheduled.dataset.name
    classes = find(dataset).classes
    if not isinstance(classes, str):
        raise UsageError(
            f"the tokens of {dataset} aren't characters",
            expected="a record of the dataset shakespeare",
        )
    return classes


def generate(
    model: TrainedModel,
    prompt: str,
    length: int,
    temperature: float,
    seed: int,
    on_progress: OnProgress = ignore_progress,
) -> Continuation:
    """Generate ``length`` characters after ``prompt`` with the backend.

    Raises:
        UsageError: the prompt is empty, or has a character that is not in the vocabulary.
        PredictionFailed: the process died or took too long, or the weights don't fit.
    """
    chosen = model.chosen
    side = chosen.side
    scheduled = chosen.scheduled
    characters = characters_of(model)
    found = list[Continued]()

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, Continued):
            found.append(answer)
        on_progress("generating", len(found) / length)

    request = Generate(
        side.backend,
        scheduled.workload,
        scheduled.dataset.folder,
        chosen.options(),
        str(model.weights),
        _tokens(prompt, characters),
        length,
        temperature,
        seed,
    )
    _, ending = chosen.ask(request, on_answer=on_answer)
    known = all(answer.token < len(characters) for answer in found)
    whole = ending.status == "done" and len(found) == length
    if not whole or not known or found[0].probabilities is None:
        reason = ending.reason or ("no answer" if known else "tokens outside the vocabulary")
        problem = f"{side.title} can't continue a text with {model.weights.name}"
        raise PredictionFailed(problem, found=reason)
    text = "".join(characters[answer.token] for answer in found)
    probabilities = np.array(found[0].probabilities[: len(characters)])
    return Continuation(prompt, text, probabilities, characters)


def attention(model: TrainedModel, text: str, layer: int, head: int) -> NDArray[np.float64]:
    """Return the attention weights between the last characters of ``text``.

    They are ``[characters, characters]``, computed with the NumPy reference; ``layer`` and ``head``
    count from 1.

    Raises:
        UsageError: there is no such layer or head, or a character is not in the vocabulary.
    """
    workload = model.chosen.scheduled.workload
    plan = lay_out(workload)
    weights = weight_files.load_for(plan, model.weights)
    rng = np.random.default_rng()
    modules = [layers.build(each, dict(weights), {}, rng) for each in plan.layers]
    window = _tokens(text, characters_of(model))[-workload.input.network_shape[0] :]
    x = np.array([window])
    for module in modules:
        x = module.forward(x, False)
    heads = [each.probabilities[0] for each in _attending(modules)]
    if not 0 < layer <= len(heads) or not 0 < head <= len(heads[layer - 1]):
        expected = "a network with attention"
        if heads:
            expected = f"LAYER:HEAD from 1:1 to {len(heads)}:{len(heads[-1])}"
        raise UsageError(f"there is no attention head {layer}:{head}", expected=expected)
    return np.asarray(heads[layer - 1][head - 1], np.float64)


def _attending(modules: list[layers.Module]) -> Iterator[layers.AttentionModule]:
    for module in modules:
        if isinstance(module, layers.ResidualModule):
            yield from _attending([*module.body, *module.shortcut])
        elif isinstance(module, layers.AttentionModule):
            yield module


def _tokens(text: str, characters: str) -> tuple[int, ...]:
    unknown = "".join(dict.fromkeys(each for each in text if each not in characters))
    if unknown or not text:
        problem = "the prompt is empty"
        if unknown:
            problem = "the prompt has characters outside the vocabulary"
        raise UsageError(
            problem, expected=f"characters of {characters!r}", found=repr(unknown or text)
        )
    return tuple(characters.index(each) for each in text)
