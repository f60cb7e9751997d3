"""Examine each framework in a separate process, in parallel.

Importing one may crash, hang, or take a minute.
"""

from __future__ import annotations

import importlib.metadata
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from trainmark.backends import registry
from trainmark.backends.examination import DeviceProduct, Examination
from trainmark.errors import ProtocolError
from trainmark.execute.parent.probe import THIS
from trainmark.execute.parent.process import Ending, ask
from trainmark.execute.protocol.answers import Answer, Examined
from trainmark.execute.protocol.worker_commands import Examine

_LOOK_SECONDS = 0.2
TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Framework:
    """The result of examining a framework.

    Args:
        name: name of its backend.
        installed: whether its packages are installed.
        install: the command that installs it; ``install_gpu`` installs its build for GPUs.
        version: version of its package.
        devices: the devices that it sees; None if it failed before.
        examination: None if it failed before, or is a plug-in that can't be examined.
        products: one per device; for one that crashed it, the reason.
        libraries: GPU libraries that it loaded, each with its files.
        problem: why it failed: an exception, a signal, or no answer.
        printed: the end of its output.
        seconds: duration, with the others running at the same time.
    """

    name: str
    installed: bool
    install: str = ""
    install_gpu: str = ""
    version: str | None = None
    devices: tuple[str, ...] | None = None
    examination: Examination | None = None
    products: tuple[DeviceProduct, ...] = ()
    libraries: dict[str, list[str]] = field(default_factory=dict)
    problem: str | None = None
    printed: str = ""
    seconds: float | None = None

    @property
    def gpus(self) -> tuple[str, ...]:
        """The devices other than the CPU."""
        return tuple(device for device in self.devices or () if device != "cpu")


class _NoLongerNeeded(Exception):
    """The answer is no longer needed."""


def examine_all(
    names: Sequence[str] | None = None, timeout: float = TIMEOUT_SECONDS, *, at_once: bool = True
) -> tuple[Framework, ...]:
    """Examine every framework of this interpreter, including those not installed.

    Args:
        names: backends; by default one per framework, plug-ins included.
        timeout: seconds after which a process is ended.
        at_once: whether to examine them in parallel.
    """
    known = registry.entries()
    if names is None:
        # A name such as keras:torch would examine the same framework twice.
        names = [name for name in known if ":" not in name]
    entries = [known[name] for name in names]
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=max(len(entries), 1) if at_once else 1) as threads:
        try:
            answers = [threads.submit(_examine, entry, timeout, stop) for entry in entries]
            while wait(answers, _LOOK_SECONDS).not_done:
                pass  # a signal just before a wait is only handled after it, so waits are short
            return tuple(answer.result() for answer in answers)
        except BaseException:  # Ctrl-C does not reach the processes, which have separate sessions
            stop.set()
            raise


def _examine(entry: registry.Entry, timeout: float, stop: threading.Event) -> Framework:
    framework = Framework(entry.name, entry.installed, entry.install, entry.install_gpu)
    if not framework.installed:
        return framework

    def on_answer(answer: Answer) -> None:
        nonlocal framework
        if isinstance(answer, Examined):
            framework = replace(framework, **vars(answer))

    def on_steps(_: int) -> None:
        if stop.is_set():
            raise _NoLongerNeeded

    start = time.monotonic()
    try:
        _, ending = ask(
            THIS.path, Examine(entry.name), on_answer=on_answer, on_steps=on_steps, timeout=timeout
        )
    except (ProtocolError, OSError) as error:
        ending = Ending("died", str(error), "")
    problem = f"no answer within {timeout:g} s" if ending.status == "timeout" else ending.reason
    products = framework.products
    devices = framework.devices
    if problem and devices is not None and len(products) < len(devices):
        products += (DeviceProduct(devices[len(products)], problem=problem),)
    version = version_of(entry) if devices is None else framework.version
    took = time.monotonic() - start
    return replace(
        framework,
        version=version,
        products=products,
        problem=problem,
        printed=ending.tail,
        seconds=took,
    )


def version_of(entry: registry.Entry) -> str | None:
    """Return the installed version of a backend's framework; None if it can't be found."""
    try:
        return importlib.metadata.version(entry.frameworks[0])
    except importlib.metadata.PackageNotFoundError:
        return None
