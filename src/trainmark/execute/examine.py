"""Each framework examined in a process of its own, all at once: importing one may crash, hang, or take a minute."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from trainmark.backends import registry
from trainmark.backends.examination import Examination, Product
from trainmark.execute.child import converse
from trainmark.execute.probe import THIS, Interpreter
from trainmark.execute.wire import Message

TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Framework:
    """What a framework showed of itself.

    Args:
        name: of its backend.
        installed: whether its packages are there.
        install: the command that installs it; ``install_gpu`` its build for NVIDIA GPUs.
        version: None where it did not get so far.
        devices: that it sees.
        examination: None where it did not get so far.
        libraries: NVIDIA's libraries that it loaded, each with the files it came from.
        problem: why it did not come to an end: what it raised, a signal, silence.
        seconds: that it took.
    """

    name: str
    installed: bool
    install: str = ""
    install_gpu: str = ""
    version: str | None = None
    devices: tuple[str, ...] = ()
    examination: Examination | None = None
    libraries: dict[str, list[str]] = field(default_factory=dict)
    problem: str | None = None
    seconds: float | None = None

    @property
    def gpus(self) -> tuple[str, ...]:
        """The devices that are no CPU."""
        return tuple(device for device in self.devices if device != "cpu")


def examine_all(
    interpreter: Interpreter = THIS, names: Sequence[str] | None = None, timeout: float = TIMEOUT_SECONDS
) -> tuple[Framework, ...]:
    """Every framework of ``interpreter``, those that are not installed too.

    Args:
        names: of backends; by default one a framework, plug-ins included.
        timeout: seconds after which a process is ended.
    """
    known = registry.entries()
    entries = [known[name] for name in names] if names is not None else [*filter(_asked, known.values())]
    with ThreadPoolExecutor(max_workers=max(len(entries), 1)) as threads:
        return tuple(threads.map(lambda entry: _examine(interpreter, entry, timeout), entries))


def _asked(entry: registry.Entry) -> bool:
    """Not a second time what is the same framework under another roof, such as ``keras:torch``."""
    return not entry.hidden and ":" not in entry.name


def _examine(interpreter: Interpreter, entry: registry.Entry, timeout: float) -> Framework:
    if not entry.installed:
        return Framework(entry.name, installed=False, install=entry.install, install_gpu=entry.install_gpu)
    heard: dict[str, Message] = {}
    start = time.monotonic()
    ending = converse(
        interpreter.path,
        lambda _: {"event": "examine", "backend": entry.name},
        hear=lambda message: heard.update({message["event"]: message}),
        timeout=timeout,
    )
    problem = ending.reason
    if ending.status == "timeout":
        problem = f"no answer within {timeout:g} s"
    seen, examined = heard.get("seen"), heard.get("examined")
    return Framework(
        entry.name,
        installed=True,
        install=entry.install,
        install_gpu=entry.install_gpu,
        version=seen["version"] if seen else _version(entry),
        devices=tuple(seen["devices"]) if seen else (),
        examination=_examination(examined) if examined else None,
        libraries=heard.get("loaded", {}).get("libraries", {}),
        problem=problem,
        seconds=time.monotonic() - start,
    )


def _examination(message: Message) -> Examination:
    products = tuple(
        Product(**{**each, "values": None if each["values"] is None else tuple(each["values"])})
        for each in message["products"]
    )
    architectures = message["architectures"]
    return Examination(
        message["built_for"], None if architectures is None else tuple(architectures), message["blind"], products
    )


def _version(entry: registry.Entry) -> str | None:
    try:
        return importlib.metadata.version(entry.frameworks[0])
    except importlib.metadata.PackageNotFoundError:
        return None
