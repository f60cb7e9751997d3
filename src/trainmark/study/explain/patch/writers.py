"""How changes that were tried are written into a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from trainmark.record.observed import Observed
from trainmark.study.explain.patch import edits
from trainmark.study.explain.patch.script import Source

_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_OPTIMISERS = tuple(
    f"torch.optim.{name}"
    for name in (
        "Adadelta",
        "Adagrad",
        "Adam",
        "AdamW",
        "Adamax",
        "NAdam",
        "RAdam",
        "RMSprop",
        "Rprop",
        "SGD",
    )
)
_CHECKPOINT_OPTIONS = (
    "use_reentrant",
    "preserve_rng_state",
    "context_fn",
    "determinism_check",
    "debug",
    "early_stop",
)


@dataclass(frozen=True)
class Script:
    """What is known of a script.

    Args:
        main: the file that is run, from the working folder; None if there is none.
        observed: what the unchanged script does.
        places: the lines that a change is about, by its name.
    """

    main: str | None
    observed: Observed
    places: Mapping[str, Sequence[str]]


Writer = Callable[[Source, Script, Sequence[str], str], Source | None]
"""Takes the source, the script, the places of the change and its value."""


def write(source: Source, script: Script, change: str) -> Source | None:
    """Return the source with a change such as ``workers=2``; None if it can't be written."""
    word, _, value = change.partition("=")
    if word not in WRITERS:
        return None
    return WRITERS[word](source, script, script.places.get(change, ()), value)


def _arguments(made: str, functions: Sequence[str], **arguments: str | None) -> Writer:
    """Return a writer that sets keyword arguments of a call.

    Args:
        made: what the call makes, such as the loader; empty if that is not observed.
        functions: last parts of the names of the function.
        arguments: expressions by name, with ``{}`` for the value of the change.
    """

    def writer(source: Source, script: Script, places: Sequence[str], value: str) -> Source | None:
        place = script.observed.places.get(made, next(iter(places), ""))
        filled = {name: text and text.format(value) for name, text in arguments.items()}

        def edit(text: str, line: int) -> str | None:
            return edits.set_arguments(text, line, functions, filled)

        return source.with_edit(place, edit)

    return writer


def _first_argument(functions: Sequence[str], expression: str) -> Writer:
    """Return a writer that sets the first argument of the call that turns a switch on."""

    def writer(source: Source, _script: Script, places: Sequence[str], _: str) -> Source | None:
        def edit(text: str, line: int) -> str | None:
            return edits.set_first_argument(text, functions, expression, line)

        return source.with_edit(places[0], edit) if len(places) == 1 else None

    return writer


def _removed(function: str) -> Writer:
    """Return a writer that removes a statement that only calls a function."""

    def writer(source: Source, _script: Script, places: Sequence[str], _: str) -> Source | None:
        def edit(text: str, line: int) -> str | None:
            return edits.remove_call(text, line, (function,))

        return source.with_edit(places[0], edit) if len(places) == 1 else None

    return writer


def _set_once(function: str, argument: str, module: str = "torch") -> Writer:
    """Return a writer of a call at the beginning, which replaces those that are there."""

    def writer(source: Source, script: Script, _places: Sequence[str], value: str) -> Source | None:
        def edit(text: str, _line: int) -> str | None:
            given = argument.format(value)
            changed = edits.set_first_argument(text, (f"{module}.{function}",), given)
            if changed is not None or function in text:
                return changed
            return edits.insert_after_import(text, module, f"{module}.{function}({given})")

        return source.with_edit(f"{script.main}:1", edit) if script.main else None

    return writer


def _bf16(source: Source, script: Script, _places: Sequence[str], _: str) -> Source | None:
    """Compute the forward pass under autocast, if it is on a single line."""
    seen = script.observed
    device = "cuda" if seen.on_gpu else "cpu"
    header = f'torch.autocast("{device}", dtype=torch.bfloat16)'
    if "forward_2" in seen.places or "forward" not in seen.places:
        return None

    def edit(text: str, line: int) -> str | None:
        return edits.wrap(text, line, header) if "import torch\n" in text else None

    return source.with_edit(seen.places["forward"], edit)


def _no_grad(source: Source, script: Script, _places: Sequence[str], _: str) -> Source | None:
    """Evaluate without gradients."""
    place = script.observed.places.get("evaluation")

    if not place or "evaluation_2" in script.observed.places:
        return None
    file, _, _ = place.rpartition(":")

    def edit(text: str, line: int) -> str | None:
        if "import torch\n" not in text:
            return None
        of_training = [
            source.line_of(each)
            for name, each in script.observed.places.items()
            if name.partition("_2")[0] in ("backward", "optimizer_step")
            and each.startswith(f"{file}:")
        ]
        return edits.wrap_loop(text, line, "torch.inference_mode()", of_training)

    return source.with_edit(place, edit)


def _channels_last(source: Source, script: Script, _places: Sequence[str], _: str) -> Source | None:
    """Keep the weights of convolutions with their channels last."""
    place = script.observed.places.get("model")
    more = "{name} = {name}.to(memory_format=torch.channels_last)"

    def edit(text: str, line: int) -> str | None:
        has_torch = "import torch\n" in text
        return edits.insert_after_assignment(text, line, more) if has_torch else None

    return source.with_edit(place, edit) if place else None


def _no_checkpointing(
    source: Source, script: Script, _places: Sequence[str], _: str
) -> Source | None:
    """Call functions instead of checkpoint(function, ...)."""

    def called(call: cst.Call) -> cst.BaseExpression | None:
        given = edits.arguments_of(call, _CHECKPOINT_OPTIONS)
        if not given or given[0].star or given[0].keyword is not None:
            return None
        function, *rest = given
        if rest:
            rest[-1] = rest[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return cst.Call(function.value, rest)

    def edit(text: str, _line: int) -> str | None:
        return edits.replace_calls(text, ("torch.utils.checkpoint.checkpoint",), called)

    return source.with_edit(f"{script.main}:1", edit) if script.main else None


def _direct_call(source: Source, _script: Script, places: Sequence[str], _: str) -> Source | None:
    """Call the model itself instead of its method ``predict``."""

    def called(call: cst.Call) -> cst.BaseExpression | None:
        given = edits.arguments_of(call, ("verbose",))
        is_plain = len(given) == 1 and not given[0].star and given[0].keyword is None
        if not is_plain or not isinstance(call.func, cst.Attribute):
            return None
        model = cst.Module([]).code_for_node(call.func.value)
        x = cst.Module([]).code_for_node(given[0].value)
        return cst.parse_expression(f"keras.ops.convert_to_numpy({model}({x}, training=False))")

    def edit(text: str, line: int) -> str | None:
        if "import keras\n" not in text:
            return None
        return edits.replace_calls(text, (".predict",), called, (line,))

    changed: Source | None = source
    for place in places:
        changed = changed and changed.with_edit(place, edit)
    return changed if places else None


WRITERS: dict[str, Writer] = {
    "workers": _arguments("loader", _LOADERS, num_workers="{}", persistent_workers="True"),
    "persistent-workers": _arguments("loader", _LOADERS, persistent_workers="True"),
    "no-workers": _arguments(
        "loader",
        _LOADERS,
        num_workers="0",
        persistent_workers=None,
        prefetch_factor=None,
        multiprocessing_context=None,
        timeout=None,
    ),
    "fused": _arguments("optimizer", _OPTIMISERS, fused="True", foreach=None),
    "foreach": _arguments("optimizer", _OPTIMISERS, foreach="True", fused=None),
    "threads": _set_once("set_num_threads", "{}"),
    "flush-denormal": _set_once("set_flush_denormal", "True"),
    "tf32": _set_once("set_float32_matmul_precision", '"high"'),
    "no-anomaly": _first_argument(("torch.autograd.set_detect_anomaly",), "False"),
    "no-deterministic": _first_argument(("torch.use_deterministic_algorithms",), "False"),
    "no-gc": _removed("gc.collect"),
    "no-empty-cache": _removed("torch.cuda.empty_cache"),
    "no-eager": _arguments("", (".compile",), run_eagerly="False"),
    "no-checkpointing": _no_checkpointing,
    "direct-call": _direct_call,
    "bf16": _bf16,
    "no-grad": _no_grad,
    "channels-last": _channels_last,
}
"""Changes that sit in one place, and how each is written."""
