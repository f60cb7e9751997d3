"""The files that an image is built from, as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from string import Template

from trainmark.container.flavours import Flavour
from trainmark.container.origin import Origin
from trainmark.container.wheel import wheel_name
from trainmark.errors import UsageError

_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME = rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
_TAG = r":[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_REFERENCE = re.compile(rf"{_NAME}(?:{_TAG})?(?:@sha256:[0-9a-f]{{64}})?")
_TAGGED = re.compile(rf"{_NAME}(?:{_TAG})?")


def is_pinned(base: str) -> bool:
    """Is it named by its digest, so that it is the same image tomorrow?"""
    return _DIGEST.search(base) is not None


def check_base(base: str) -> str:
    """``base``, if it names an image; raises :class:`~trainmark.errors.UsageError`."""
    return _checked(base, _REFERENCE, "--base", "NAME@sha256: and 64 hexadecimal digits, or NAME:TAG")


def check_tag(tag: str) -> str:
    """``tag``, if an image may be called so; raises :class:`~trainmark.errors.UsageError`."""
    return _checked(tag, _TAGGED, "--tag", "NAME:TAG in small letters, such as registry.example.org/me/trainmark:mine")


def image_name(flavour: Flavour, origin: Origin) -> str:
    """What an image is called if nobody says otherwise."""
    return f"trainmark:{origin.version}-{flavour.name}".replace("+", "-")


def dockerfile(flavour: Flavour, origin: Origin, base: str | None = None) -> str:
    """The Dockerfile of a flavour, on ``base`` instead of its own one."""
    labels = "\n".join(f'      {key}="{value}" \\' for key, value in origin.labels().items())
    return (
        _template("Dockerfile")
        .substitute(
            version=origin.version,
            title=flavour.title,
            base=check_base(base or flavour.base),
            venv_options=flavour.venv_options,
            lock=flavour.lock,
            framework=f"{flavour.framework}\n" if flavour.framework else "",
            wheel=wheel_name(origin),
            image=image_name(flavour, origin),
            environment=("\\\n    " + " \\\n    ".join(flavour.environment) if flavour.environment else "").rstrip(),
            labels=labels,
        )
        .replace(" \n", "\n")
    )


def base_of(text: str) -> str | None:
    """The base that a Dockerfile names, None where none is found."""
    found = re.search(r"^ARG BASE=(\S+)$", text, re.MULTILINE)
    return found[1] if found else None


def compose(chosen: Sequence[tuple[Flavour, str]], origin: Origin) -> str:
    """One file for all flavours, each with its base: the CPU's alone, and a GPU's after it with ``--profile``."""
    services = [_service(flavour, base, origin, chosen[0][0] if index else None) for index, (flavour, base) in
                enumerate(chosen)]  # fmt: skip
    return _template("compose.yaml").substitute(version=origin.version, services="".join(services).rstrip())


def ignored() -> str:
    """What of the folder an engine does not look at."""
    return resources.files(__package__).joinpath("template", "dockerignore").read_text(encoding="utf-8")


def lock(name: str) -> str:
    """A file of exact versions with hashes."""
    return resources.files(__package__).joinpath("locks", name).read_text(encoding="utf-8")


def _service(flavour: Flavour, base: str, origin: Origin, before: Flavour | None) -> str:
    text = _template("service.yaml").substitute(
        name=flavour.name,
        image=image_name(flavour, origin),
        dockerfile=flavour.dockerfile,
        base=base,
        arguments='        TORCH_INDEX: "${TRAINMARK_TORCH_INDEX:-}"\n' if flavour.framework else "",
    )
    if flavour.device == "cuda":
        text += _template("gpus.yaml").substitute()
    if before is not None:
        waits = f"    depends_on:\n      {before.name}:\n        condition: service_completed_successfully\n"
        text += f"    profiles: [{flavour.name}]\n{waits}"
    return text


def _template(name: str) -> Template:
    return Template(resources.files(__package__).joinpath("template", name).read_text(encoding="utf-8"))


def _checked(text: str, allowed: re.Pattern[str], option: str, expected: str) -> str:
    if not allowed.fullmatch(text):
        raise UsageError(f"{option} can't be read", expected=expected, found=repr(text))
    return text
