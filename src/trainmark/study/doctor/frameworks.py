"""Checks of each framework, from what it showed of itself in a process of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainmark import units
from trainmark.backends.examination import EXPECTED, Examination, Product
from trainmark.execute.examine import Framework
from trainmark.measure.host import Host
from trainmark.measure.nvidia import Driver
from trainmark.study.doctor.check import Check, failed, passed, skipped, warned

_LONG_FIRST_USE_SECONDS = 30.0
_MACHINE_CODE = re.compile(r"sm_(\d+)(\d)([af]?)$")
_TO_BE_COMPILED = re.compile(r"compute_(\d+)(\d)")
_MISSING_LIBRARY = re.compile(
    r"lib[\w-]+\.so[.\d]*(?=: cannot open shared object)|(?<=Could not load library )lib[\w.-]+"
)
_AFRESH = "Reinstall it, in a fresh environment: {}"
_NEWER_DRIVER = "Install a newer driver, or a build of {name} for CUDA {cuda}"


def each(frameworks: Sequence[Framework], host: Host, driver: Driver) -> Iterator[Check]:
    """All that is asked of every framework, and whether they agree."""
    for framework in frameworks:
        yield imports(framework)
        examination = framework.examination
        if examination is None:
            continue
        yield cuda(framework, examination, driver)
        yield sees_gpu(framework, examination, host, driver)
        yield architecture(framework, examination, driver)
        yield libraries(framework, examination)
        yield from products(framework, examination)
    yield agree(frameworks)


def imports(framework: Framework) -> Check:
    """Whether it can be imported, and comes to an end."""
    id_ = f"{framework.name}.import"
    if not framework.installed:
        return skipped(id_, "not installed", framework.install)
    took = f" in {units.seconds(framework.seconds)}" if framework.seconds is not None else ""
    if framework.problem:
        version = f" {framework.version}" if framework.version else ""
        found = f"{framework.name}{version} failed{took}: {framework.problem}"
        return failed(id_, found, f"Reinstall it: {framework.install}")
    return passed(id_, f"{framework.name} {framework.version}{took}")


def cuda(framework: Framework, examination: Examination, driver: Driver) -> Check:
    """Whether the driver is new enough for the CUDA that it was built with."""
    id_ = f"{framework.name}.cuda-driver"
    built = re.fullmatch(r"CUDA (\d+)(?:\.(\d+))?.*", examination.built_for or "")
    if built is None:
        return skipped(id_, f"built for {examination.built_for or 'the CPU alone'}")
    if driver.cuda is None:
        return skipped(id_, f"built for {examination.built_for}; there is no driver to hold that against")
    serves = f"{driver.cuda[0]}.{driver.cuda[1]}"
    found = f"built for {examination.built_for}; driver {driver.version} serves CUDA up to {serves}"
    if int(built[1]) > driver.cuda[0]:
        return failed(id_, found, _NEWER_DRIVER.format(name=framework.name, cuda=serves))
    return passed(id_, found)  # a newer minor version runs on the older driver of the same major one


def sees_gpu(framework: Framework, examination: Examination, host: Host, driver: Driver) -> Check:
    """Whether it uses the GPUs that the driver has."""
    id_, there, seen = f"{framework.name}.gpu", len(driver.gpus), len(framework.gpus)
    if not there:
        if seen:
            return passed(id_, f"sees {', '.join(framework.gpus)}")
        return skipped(id_, "there is no GPU to see")
    has = f"the driver has {units.many(there, 'GPU')}"
    if seen >= there or (any(gpu.mig for gpu in driver.gpus) and seen):
        return passed(id_, f"sees {', '.join(framework.gpus)}")
    if examination.built_for is None:
        return failed(id_, f"{has}, but this {framework.name} was built for the CPU alone", framework.install_gpu)
    hidden = host.environment.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return warned(
            id_, f"{has}, {framework.name} sees {seen}: CUDA_VISIBLE_DEVICES={hidden!r}", "unset CUDA_VISIBLE_DEVICES"
        )
    reason = f": {examination.blind}" if examination.blind else ""
    return failed(id_, f"{has}, {framework.name} sees {seen}{reason}", _AFRESH.format(framework.install_gpu))


def architecture(framework: Framework, examination: Examination, driver: Driver) -> Check:
    """Whether its GPU code fits the GPUs, or must be compiled at first use, or is not there at all."""
    id_, names = f"{framework.name}.architecture", examination.architectures
    gpus = [gpu for gpu in driver.gpus if gpu.compute_capability is not None]
    if not names or not gpus or not any(name.startswith(("sm_", "compute_")) for name in names):
        return skipped(id_, "for which GPUs it was compiled is not told, or there is none")
    built = f"{framework.name} was compiled for {', '.join(names)}"
    slow = None
    for gpu in gpus:
        assert gpu.compute_capability is not None
        capability = gpu.compute_capability
        needs = f"GPU {gpu.index} ({gpu.name}) is sm_{capability[0]}{capability[1]}"
        if runs_on(names, capability):
            continue
        if not compiles_for(names, capability):
            return failed(
                id_,
                f"{needs}, but {built}: 'no kernel image is available for execution on the device'",
                f"Install a build that has it (newer for a new GPU, older for an old one): {framework.install_gpu}",
            )
        slow = f"{needs}, but {built}: its code is compiled at first use, which takes minutes once"
    if slow:
        return warned(id_, slow, f"A newer build may have it: {framework.install_gpu}; and keep ~/.nv/ComputeCache")
    return passed(id_, f"{built}, which fits")


def libraries(framework: Framework, examination: Examination) -> Check:
    """Whether NVIDIA's libraries are there, and once."""
    id_ = f"{framework.name}.libraries"
    said = " ".join(filter(None, (examination.blind, *(product.problem for product in examination.products))))
    missing = _MISSING_LIBRARY.search(said)
    if missing:
        return failed(id_, f"{missing[0]} is missing", _AFRESH.format(framework.install_gpu))
    twice = {name: files for name, files in framework.libraries.items() if len(files) > 1}
    if twice:
        listed = "; ".join(f"{name}: {', '.join(files)}" for name, files in twice.items())
        fix = "unset LD_LIBRARY_PATH, so that it takes the ones it came with"
        return warned(id_, f"loaded from two places at once: {listed}", fix)
    if not framework.libraries:
        return skipped(id_, "it loaded none of NVIDIA's libraries")
    return passed(id_, f"{', '.join(framework.libraries)}: each once")


def products(framework: Framework, examination: Examination) -> Iterator[Check]:
    """Whether each device multiplies 2 × 3 by 3 × 2 numbers, rightly, and is the one that was asked."""
    for product in examination.products:
        yield _product(framework, product)


def agree(frameworks: Sequence[Framework]) -> Check:
    """Whether all see the same number of GPUs, among those that could see any."""
    id_ = "frameworks.agree"
    seen = {each.name: len(each.gpus) for each in frameworks if each.examination and each.examination.built_for}
    if len(seen) < 2:
        return skipped(id_, "fewer than two frameworks that were built for GPUs")
    if len(set(seen.values())) > 1:
        listed = ", ".join(f"{name} {number}" for name, number in seen.items())
        fix = "See what the checks above say of the one with fewer"
        return warned(id_, f"they see different numbers of GPUs: {listed}", fix)
    return passed(id_, f"each sees {units.many(next(iter(seen.values())), 'GPU')}")


def runs_on(architectures: Sequence[str], capability: tuple[int, int]) -> bool:
    """Whether one of ``architectures`` is machine code for a GPU of ``capability``: the same generation, and not later
    in it; with a letter behind, that very one."""
    for name in architectures:
        code = _MACHINE_CODE.fullmatch(name)
        if code is None or int(code[1]) != capability[0]:
            continue
        if int(code[2]) == capability[1] or (int(code[2]) < capability[1] and code[3] != "a"):
            return True
    return False


def compiles_for(architectures: Sequence[str], capability: tuple[int, int]) -> bool:
    """Whether one of ``architectures`` can be compiled for a GPU of ``capability`` by the driver."""
    found = (_TO_BE_COMPILED.fullmatch(name) for name in architectures)
    return any((int(code[1]), int(code[2])) <= capability for code in found if code)


def _product(framework: Framework, product: Product) -> Check:
    id_ = f"{framework.name}.product.{product.device}"
    if product.values is None:
        fix = f"See {framework.name}.architecture and {framework.name}.libraries"
        return failed(id_, f"a small product failed: {product.problem}", fix)
    written = " ".join(f"{value:g}" for value in product.values)
    took = f" in {units.seconds(product.seconds)}" if product.seconds is not None else ""
    if product.values != EXPECTED:
        return failed(
            id_,
            f"1…6 as 2×3 by 3×2 gave {written}, not {' '.join(f'{value:g}' for value in EXPECTED)}",
            "Don't trust this device: run its vendor's diagnostics (dcgmi diag -r 3)",
        )
    if product.device != "cpu" and product.placed_on and "cpu" in product.placed_on.lower():
        return failed(id_, f"asked for {product.device}, computed on {product.placed_on}", f"See {framework.name}.gpu")
    found = f"22 28 / 49 64 on {product.placed_on}{took}"
    if product.seconds is not None and product.seconds > _LONG_FIRST_USE_SECONDS:
        return warned(id_, f"{found}: the first use is slow", f"See {framework.name}.architecture")
    return passed(id_, found)
