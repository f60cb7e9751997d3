"""Choose backends, styles and devices from the options and the available ones."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.backends import registry
from trainmark.backends.base import (
    DEFAULT_STYLES,
    STYLES,
    ResourceLimits,
    require_memory,
    require_support,
)
from trainmark.errors import (
    AbsentDevice,
    NotInstalled,
    TrainmarkError,
    UnknownName,
    Unsupported,
    UsageError,
)
from trainmark.execute.parent.plan import Side
from trainmark.execute.parent.probe import THIS, Interpreter, Seen
from trainmark.workload.precision import Precision
from trainmark.workload.spec import Workload

Choice = tuple[str, Interpreter]
"""The name of a backend, and the interpreter that it runs in."""
GENERIC = ("gpu", "cuda")
"""Device names that mean the backend's first accelerator."""


def choose_backends(names: Sequence[str], interpreters: Sequence[Interpreter]) -> list[Choice]:
    """Return backends with the interpreter each runs in.

    Without ``names``, it is the best backend installed here.

    Args:
        names: ``torch`` or ``torch@label``.
        interpreters: those given by ``--python``.

    Raises:
        UnknownName: no such label, or no such backend here. Another interpreter may have other
            plug-ins, so its backends are checked when it is probed.
        NotInstalled: the framework is missing here.
        UsageError: an interpreter that no backend uses.
    """
    by_label = {interpreter.label: interpreter for interpreter in (THIS, *interpreters)}
    names = list(names) or [next(e.name for e in registry.entries().values() if e.installed)]
    choices = []
    for written in names:
        name, _, label = written.partition("@")
        name = registry.SYNONYMS.get(name, name)
        interpreter = by_label.get(label or THIS.label)
        if interpreter is None:
            named = f"Give its interpreter: --python {label}=/path/to/bin/python"
            raise UnknownName("interpreter label", label, by_label, otherwise=named)
        if interpreter == THIS:
            entry = registry.find(name)
            if not entry.installed:
                problem = f"the backend {name!r} needs {entry.needs}, which is not installed"
                raise NotInstalled(problem, fix=f"Install it: {entry.install}")
        if (name, interpreter) not in choices:
            choices.append((name, interpreter))
    for interpreter in interpreters:
        if all(chosen != interpreter for _, chosen in choices):
            raise UsageError(
                f"the interpreter {interpreter.label!r} is not used",
                fix=f"Name a backend for it: --backend {choices[0][0]}@{interpreter.label}",
            )
    return choices


def require_answers(seen: Sequence[Seen]) -> None:
    """Raise an error for a backend that failed its probe.

    Raises:
        Unsupported: a plug-in for another version of trainmark.
        NotInstalled: any other problem.
    """
    known = registry.entries()
    for each in seen:
        if not each.problem:
            continue
        problem = f"the backend {each.backend!r} does not work in {each.interpreter.path}"
        if registry.UPDATE in each.problem:  # installing it again would not help
            raise Unsupported(f"{problem}: {each.problem}")
        entry = known.get(each.backend)
        # It is a plug-in of that interpreter, or unknown there too; the problem says which.
        if entry is None:
            raise NotInstalled(problem, found=each.problem)
        if each.interpreter == THIS:
            fix = "Run `trainmark doctor`"
        else:
            own_pip = f"{each.interpreter.path} -m " if entry.install.startswith("pip ") else ""
            fix = f"Install it there: {own_pip}{entry.install}"
        raise NotInstalled(
            problem,
            expected=f"an interpreter that can import {entry.needs}",
            # The fix repeats this advice, for that interpreter.
            found=each.problem.removesuffix(f". {entry.install}"),
            fix=fix,
        )


def require_known_styles(styles: Sequence[str]) -> None:
    """Raise UnknownName for a style that no backend can have."""
    for style in styles:
        if style not in STYLES:
            raise UnknownName("style", style, STYLES)


def choose_sides(
    workload: Workload,
    seen: Sequence[Seen],
    styles: Sequence[str],
    devices: Sequence[str],
    precision: Precision,
    limits: ResourceLimits,
) -> tuple[list[Side], list[str]]:
    """Return the sides that can run ``workload``, and why the others can't.

    There is a sentence for each requested combination that can't.

    Args:
        seen: what the chosen backends support.
        styles: requested styles; empty means those of ``DEFAULT_STYLES`` that each backend has.
        devices: requested devices; empty means all that each backend sees.

    Raises:
        AbsentDevice, Unsupported: no chosen backend supports something requested.
    """
    sides: list[Side] = []
    refusals: list[TrainmarkError] = []
    for each in seen:
        if each.can is None:
            continue
        meant = [_meant(device, each) for device in devices]
        for device in meant or [device.id for device in each.devices]:
            for style in styles or [style for style in DEFAULT_STYLES if style in each.can.styles]:
                side = Side(
                    each.backend,
                    style,  # type: ignore[arg-type]
                    device,
                    each.interpreter,
                    precision,
                    each.can.version,
                )
                try:
                    options = side.options(0, limits)
                    require_memory(workload, require_support(each.can, workload, options), options)
                except TrainmarkError as refusal:
                    refusals.append(refusal)
                else:
                    sides.append(side)
    if not sides:
        raise refusals[0]
    named = [each for each in devices if each not in GENERIC]
    _require_each(named, {side.device for side in sides}, refusals, AbsentDevice)
    _require_each(styles, {side.style for side in sides}, refusals, Unsupported)
    return sides, list(dict.fromkeys(str(refusal) for refusal in refusals))


def _meant(device: str, seen: Seen) -> str:
    """Return the backend's first accelerator if ``device`` is generic, else ``device``."""
    found = [each.id for each in seen.devices if each.kind == "accelerator"]
    return found[0] if device in GENERIC and found else device


def _require_each(
    asked: Sequence[str],
    found: set[str],
    refusals: Sequence[TrainmarkError],
    kind: type[TrainmarkError],
) -> None:
    """Raise an error for a named choice that no backend supports."""
    for name in asked:
        if name not in found:
            of_kind = [refusal for refusal in refusals if isinstance(refusal, kind)]
            about = (refusal for refusal in of_kind if name in str(refusal))
            raise next(about, refusals[0])
