"""Checks of each framework, from its examination in a separate process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainmark import units
from trainmark.backends import registry
from trainmark.backends.examination import EXPECTED, DeviceProduct, Examination
from trainmark.execute.parent.examine import Framework
from trainmark.measure.host import Host
from trainmark.measure.vendor import Driver
from trainmark.measure.vendors import vendor_of
from trainmark.study.doctor.check import Check, Finding, failed, passed, skipped, warned

_LONG_FIRST_USE_SECONDS = 30.0
"""Seconds from which on the first product on a device counts as slow."""
_MACHINE_CODE = re.compile(r"sm_(\d+)(\d)([af]?)$")
"""Architecture of code that runs as it is: major and minor number, and a letter."""
_TO_BE_COMPILED = re.compile(r"compute_(\d+)(\d)")
"""Architecture of code that the driver compiles: major and minor number."""
_MISSING_LIBRARY = re.compile(
    r"lib[\w-]+\.so[.\d]*(?=: cannot open shared object)|(?<=Could not load library )lib[\w.-]+"
)
_AFRESH = "Reinstall it in a fresh environment: {}"
_AGAIN = "Import it by hand to see its error; then, in a fresh environment: {}"
_NEWER_DRIVER = (
    "Install a newer driver (WSL: on Windows; container: on the host): sudo ubuntu-drivers install"
)
_JETSON = ((7, 2), (8, 7))
"""Compute capabilities of GPUs that run only code that was built for exactly them."""


def checks(frameworks: Sequence[Framework], host: Host, driver: Driver) -> Iterator[Check]:
    """Run all checks of every framework, and check whether they agree."""
    for framework in frameworks:
        for what, finding in _findings(framework, host, driver):
            yield Check(f"{framework.name}.{what}", *finding)
    yield Check("frameworks.agree", *agree(frameworks))


def _findings(framework: Framework, host: Host, driver: Driver) -> Iterator[tuple[str, Finding]]:
    yield "import", imports(framework)
    if not framework.installed:
        return
    examination = framework.examination
    if examination is not None:
        yield "cuda-driver", cuda(examination, driver)
        yield "gpu", sees_gpu(framework, examination, host, driver)
        yield "architecture", architecture(framework, examination, host, driver)
    else:
        why = "not reached" if framework.problem else "a plug-in without this check"
        yield from ((what, skipped(why)) for what in ("cuda-driver", "gpu", "architecture"))
    yield "libraries", libraries(framework, host)
    for product in framework.products:
        yield f"product.{product.device}", _product(framework.name, product)


def imports(framework: Framework) -> Finding:
    """Whether it can be imported and examined."""
    if not framework.installed:
        return skipped("not installed", framework.install)
    if framework.devices is None:
        version = f" {framework.version}" if framework.version else ""
        problem, update, how = (framework.problem or "no output").partition(registry.UPDATE)
        found = f"{framework.name}{version} failed: {problem.removesuffix('. ')}"
        return failed(found, f"{update}{how}" or _AGAIN.format(framework.install))
    took = units.seconds(framework.seconds)
    return passed(f"{framework.name} {framework.version} (import and test: {took})")


def cuda(examination: Examination, driver: Driver) -> Finding:
    """Whether the driver is new enough for the CUDA that it was built with."""
    built = _cuda_of(examination)
    if built is None:
        return skipped(f"built for {examination.built_for or 'the CPU only'}")
    if driver.cuda is None:
        return skipped(f"built for {examination.built_for}; there is no driver to compare with")
    serves = f"{driver.cuda[0]}.{driver.cuda[1]}"
    found = (
        f"built for {examination.built_for}; driver {driver.version} supports CUDA up to {serves}"
    )
    if built[0] > driver.cuda[0]:
        return failed(found, f"{_NEWER_DRIVER}, or install a build for CUDA {driver.cuda[0]}")
    return passed(found)  # a newer minor version runs on a driver of the same major version


def sees_gpu(framework: Framework, examination: Examination, host: Host, driver: Driver) -> Finding:
    """Whether it uses the GPUs that it should see."""
    seen = framework.gpus
    expected = vendor_of(driver).shown(driver, host.environment)
    if not expected and not seen:
        return skipped("no GPU, or all are hidden")
    if framework.devices is None:
        return skipped("not reached")
    if len(seen) >= len(expected):
        return passed(f"sees {', '.join(seen)}")
    lacking = f"sees {len(seen)} of {units.many(len(expected), 'GPU')}"
    if examination.built_for is None:
        if not framework.install_gpu:
            return skipped("it has no GPU build")
        fix = _for_driver(framework.install_gpu, driver)
        return failed(f"{lacking}: this {framework.name} was built for the CPU only", fix)
    if examination.hidden_by is not None:
        variable = examination.hidden_by.partition("=")[0]
        return warned(f"{lacking}: {examination.hidden_by}", f"unset {variable}")
    if not seen and any(gpu.mig for gpu in expected):
        return failed(
            f"{lacking}: MIG is enabled, and there may be no MIG instance",
            vendor_of(driver).undivide,
        )
    reason = f": {examination.blind}" if examination.blind else ""
    return failed(f"{lacking}{reason}", _AFRESH.format(_for_driver(framework.install_gpu, driver)))


def architecture(
    framework: Framework, examination: Examination, host: Host, driver: Driver
) -> Finding:
    """Whether its GPU code fits the GPUs, must be compiled at first use, or is missing."""
    names = examination.architectures or ()
    shown = vendor_of(driver).shown(driver, host.environment)
    gpus = [(gpu, gpu.compute_capability) for gpu in shown if gpu.compute_capability is not None]
    if not gpus or not any(name.startswith(("sm_", "compute_")) for name in names):
        return skipped("no GPU, or its architectures are not reported")
    built = f"{framework.name} was compiled for {', '.join(names)}"
    built_with = _cuda_of(examination)
    newer = _for_driver(framework.install_gpu, driver)
    slow = None
    for gpu, capability in gpus:
        if runs_on(names, capability):
            continue
        unfit = f"GPU {gpu.index} ({gpu.name}) is sm_{capability[0]}{capability[1]}, but {built}"
        if not compiles_for(names, capability):
            older = "a build for an older CUDA, from the framework's page of previous versions"
            fix = f"For a newer GPU: {newer}; for an older GPU: {older}"
            return failed(
                f"{unfit}: 'no kernel image is available for execution on the device'", fix
            )
        if built_with and driver.cuda and built_with > driver.cuda:
            why = f"the driver must compile the rest, but is older than {examination.built_for}"
            return failed(f"{unfit}; {why}", _NEWER_DRIVER)
        slow = f"{unfit}: its code is compiled at first use, which takes minutes"
    if slow:
        return warned(slow, f"A newer build may include it: {newer}; and keep ~/.nv/ComputeCache")
    return passed(f"{built}, which fits")


def libraries(framework: Framework, host: Host) -> Finding:
    """Whether the GPU's libraries are present and loaded once."""
    blind = framework.examination.blind if framework.examination else None
    problems = [product.problem for product in framework.products]
    messages = (blind, framework.problem, *problems, framework.printed)
    missing = _MISSING_LIBRARY.search("\n".join(filter(None, messages)))
    if missing and missing[0].startswith("libcuda.so"):
        return skipped(f"{missing[0]}, which comes with the driver, is missing", "See gpu.driver")
    if missing:
        fix = _AFRESH.format(framework.install_gpu or framework.install)
        return failed(f"{missing[0]} is missing", fix)
    twice = {name: files for name, files in framework.libraries.items() if len(files) > 1}
    if twice:
        listed = "; ".join(f"{name}: {', '.join(files)}" for name, files in twice.items())
        fix = _AFRESH.format(framework.install)
        if "LD_LIBRARY_PATH" in host.environment:
            fix = "unset LD_LIBRARY_PATH, so that it uses its own libraries"
        return warned(f"loaded from two places: {listed}", fix)
    if not framework.libraries:
        return skipped("it loaded no GPU libraries")
    return passed(f"{', '.join(framework.libraries)}: each loaded once")


def agree(frameworks: Sequence[Framework]) -> Finding:
    """Whether all frameworks built for GPUs see the same number of them."""
    of_gpus = [each for each in frameworks if each.examination and each.examination.built_for]
    seen = {each.name: len(each.gpus) for each in of_gpus}
    if len(seen) < 2 or not any(seen.values()):
        return skipped("fewer than two frameworks are built for GPUs, or none sees a GPU")
    if len(set(seen.values())) > 1:
        listed = ", ".join(f"{name} {number}" for name, number in seen.items())
        return warned(
            f"they see different numbers of GPUs: {listed}",
            "See the checks above of the one with fewer",
        )
    return passed(f"each sees {units.many(next(iter(seen.values())), 'GPU')}")


def runs_on(architectures: Sequence[str], capability: tuple[int, int]) -> bool:
    """Whether one of ``architectures`` is machine code for a GPU of ``capability``.

    It must be of the same generation and not newer; with a letter after it, exactly the same.
    """
    major, minor = capability
    matches = (_MACHINE_CODE.fullmatch(name) for name in architectures)
    codes = [code for code in matches if code and int(code[1]) == major]
    if any(int(code[2]) == minor for code in codes):
        return True
    if capability in _JETSON:
        return False
    return any(int(code[2]) < minor and code[3] != "a" for code in codes)


def compiles_for(architectures: Sequence[str], capability: tuple[int, int]) -> bool:
    """Whether the driver can compile one of ``architectures`` for a GPU of ``capability``."""
    found = (_TO_BE_COMPILED.fullmatch(name) for name in architectures)
    return any((int(code[1]), int(code[2])) <= capability for code in found if code)


def _cuda_of(examination: Examination) -> tuple[int, int] | None:
    """Return the CUDA version it was built with; a missing minor version counts as 0."""
    built = re.match(r"CUDA (\d+)(?:\.(\d+))?", examination.built_for or "")
    return (int(built[1]), int(built[2] or 0)) if built else None


def _for_driver(install: str, driver: Driver) -> str:
    """Return the install command for the driver's CUDA version; ``jax[cuda13]`` needs CUDA 13."""
    if driver.cuda and driver.cuda[0] == 12:
        return install.replace("cuda13", "cuda12")
    return install


def _product(framework: str, product: DeviceProduct) -> Finding:
    if product.values is None:
        fix = f"See {framework}.architecture and {framework}.libraries"
        return failed(f"a small matrix multiplication failed: {product.problem}", fix)
    if product.values != EXPECTED:
        gave = " ".join(f"{value:g}" for value in product.values)
        right = " ".join(f"{value:g}" for value in EXPECTED)
        fix = "Don't trust this device: run its vendor's diagnostics (dcgmi diag -r 3)"
        return failed(f"the 2×3 by 3×2 product of 1…6 is {gave}, not {right}", fix)
    if product.device != "cpu" and product.placed_on and "cpu" in product.placed_on.lower():
        return failed(
            f"asked for {product.device}, computed on {product.placed_on}", f"See {framework}.gpu"
        )
    took = f" in {units.seconds(product.seconds)}" if product.seconds is not None else ""
    found = f"22 28 / 49 64 on {product.placed_on}{took}"
    if product.seconds is not None and product.seconds > _LONG_FIRST_USE_SECONDS:
        return warned(f"{found}: the first use is slow", f"See {framework}.architecture")
    return passed(found)
