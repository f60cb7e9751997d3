"""Checks of NVIDIA's driver and of each GPU."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark import units
from trainmark.measure.host import Host
from trainmark.measure.nvidia.nvml import NAME
from trainmark.measure.nvidia.visible import HIDE_ALL, VISIBLE, shown_by
from trainmark.measure.vendor import Driver, Gpu, Installed
from trainmark.study.doctor.check import Check, failed, passed, skipped, warned

_INSTALL_DRIVER = "sudo ubuntu-drivers install (elsewhere your distribution's package of NVIDIA's driver), then reboot"
_PASS_IN = {
    "docker": "docker run --gpus all, with the NVIDIA Container Toolkit on the host",
    "podman": "podman run --device nvidia.com/gpu=all, with the NVIDIA Container Toolkit on the host",
    "kubernetes": "resources: limits: nvidia.com/gpu: 1 in the pod's specification",
    "apptainer": "apptainer exec --nv",
}


def checks(host: Host, found: Driver) -> Iterator[Check]:
    """All of them."""
    yield wsl(host)
    yield driver(host, found)
    yield visible(host, found)
    yield from lost(found)
    yield from each(host, found)


def wsl(host: Host) -> Check:
    """Under Windows, whether a GPU is passed through."""
    id_ = "host.wsl"
    if not host.wsl:
        return skipped(id_, "not under WSL")
    inside = ", ".join(_installed(host).wsl_drivers)
    if inside and not host.container:  # there it is Windows' own, passed in
        return warned(
            id_,
            f"a Linux driver is installed inside WSL ({inside}), which can't drive Windows' GPU "
            "and may be loaded instead of the one in /usr/lib/wsl/lib",
            "sudo apt-get purge 'libnvidia-compute-*' 'nvidia-driver-*', then in PowerShell: wsl --shutdown",
        )
    if host.wsl_gpu:
        return passed(id_, "a GPU is passed through (/dev/dxg)")
    return warned(
        id_,
        "WSL has no /dev/dxg, so no GPU is visible",
        "Install NVIDIA's Windows driver (none inside WSL), then in PowerShell: wsl --update; wsl --shutdown",
    )


def driver(host: Host, found: Driver) -> Check:
    """Whether NVIDIA's driver is installed and answers."""
    id_ = "gpu.driver"
    if found.problem is None and found.gpus:
        return _answering(id_, host, found)
    problem = found.problem or "it lists no GPU"
    if host.wsl:
        return _under_wsl(id_, host, problem)
    if not _has_gpu(host):
        return skipped(
            id_, f"no NVIDIA GPU on this machine (NVML: {problem})", "If there should be one: lspci | grep -i nvidia"
        )
    if "mismatch" in problem.lower():
        running = _installed(host).module or "another version"
        return failed(id_, f"{problem}: the kernel still runs {running}, not the installed version", "sudo reboot")
    if host.container:
        return failed(
            id_,
            f"this machine has a GPU, but its driver is not passed into the container ({host.container}): {problem}",
            _PASS_IN.get(host.container, _PASS_IN["docker"]),
        )
    if tool := _installed(host).tool:
        return failed(
            id_,
            f"nvidia-smi is at {tool}, but NVML does not answer: {problem}",
            "Run nvidia-smi: if it fails too, sudo modprobe nvidia; "
            "otherwise add the folder of libnvidia-ml.so.1 to LD_LIBRARY_PATH",
        )
    return failed(id_, f"an NVIDIA GPU is on the bus, but no driver answers: {problem}", _INSTALL_DRIVER)


def lost(found: Driver) -> Iterator[Check]:
    """GPUs that don't answer."""
    for gpu in found.gpus:
        if gpu.problem is None:
            continue
        id_ = f"gpu.answers.{gpu.index}"
        if "permission" in gpu.problem.lower():
            yield skipped(id_, f"GPU {gpu.index} is not accessible: {gpu.problem}")
        else:
            fix = f"sudo nvidia-smi -i {gpu.index} -r, or reboot; if it comes back: dmesg | grep -i xid"
            yield failed(id_, f"GPU {gpu.index} does not answer: {gpu.problem}", fix)


def visible(host: Host, found: Driver) -> Check:
    """Whether the environment hides GPUs from the frameworks."""
    id_, value = "gpu.visible-devices", host.environment.get(VISIBLE)
    passed_in = host.environment.get("NVIDIA_VISIBLE_DEVICES")
    if passed_in in ("void", "none", "") and host.container and not found.gpus and _has_gpu(host):
        return failed(
            id_,
            f"NVIDIA_VISIBLE_DEVICES={passed_in!r}, so the container runtime passes no GPU",
            _PASS_IN.get(host.container, _PASS_IN["docker"]),
        )
    if not found.gpus:
        return skipped(id_, "no GPU to hide")
    if value is None:
        return passed(id_, f"{VISIBLE} is not set, so every GPU is visible")
    shown, problem = shown_by(value, found)
    if problem is None:
        return passed(id_, f"{VISIBLE}={value!r}: {units.many(len(shown), 'GPU')}")
    say = warned if shown or value.strip() in HIDE_ALL else failed
    return say(id_, f"{VISIBLE}={value!r}: {problem}", f"unset {VISIBLE}, or use the names of: nvidia-smi -L")


def each(host: Host, found: Driver) -> Iterator[Check]:
    """All checks of every GPU; the id ends in its number."""
    answering = [gpu for gpu in found.gpus if gpu.problem is None]
    for gpu in answering:
        results = [check(gpu) for check in (*_PER_GPU, *((_peers,) if len(answering) > 1 else ()))]
        for result in (*results, _foreign(host, gpu)):
            yield Check(f"{result.id}.{gpu.index}", result.status, result.found, result.fix)


def _answering(id_: str, host: Host, found: Driver) -> Check:
    if found.cuda is None:
        return failed(
            id_,
            f"driver {found.version} answers, but its CUDA library (libcuda.so.1) is missing",
            "In a container: -e NVIDIA_DRIVER_CAPABILITIES=compute,utility; otherwise reinstall the driver"
            if host.container
            else "Reinstall the driver with its compute libraries (libnvidia-compute or cuda-drivers)",
        )
    cuda = f"{found.cuda[0]}.{found.cuda[1]}"
    return passed(id_, f"driver {found.version}, supports CUDA up to {cuda}, {units.many(len(found.gpus), 'GPU')}")


def _under_wsl(id_: str, host: Host, problem: str) -> Check:
    if not host.wsl_gpu:
        return skipped(id_, f"no GPU is passed into WSL (NVML: {problem})")
    return skipped(
        id_,
        f"a GPU is passed into WSL, but no NVIDIA driver answers (NVML: {problem})",
        "If it is an NVIDIA GPU: install its Windows driver (none inside WSL), and LD_LIBRARY_PATH=/usr/lib/wsl/lib",
    )


def _has_gpu(host: Host) -> bool:
    """Whether the bus or a device file shows an NVIDIA GPU; a command or a package does not count."""
    return bool((host.gpus_on_bus or {}).get(NAME)) or bool(_installed(host).device_files)


def _installed(host: Host) -> Installed:
    return host.installed.get(NAME, Installed())


def _foreign(host: Host, gpu: Gpu) -> Check:
    id_ = "gpu.processes"
    if gpu.processes is None or (host.container and not gpu.processes):
        return skipped(id_, "others' processes are not visible" + (" in a container" if host.container else ""))
    if gpu.processes:
        listed = ", ".join(map(str, gpu.processes))
        return warned(id_, f"other processes compute on it: {listed}", "Wait, or stop them: nvidia-smi")
    return passed(id_, "no other process computes on it")


def _link(gpu: Gpu) -> Check:
    id_ = "gpu.pci-link"
    if gpu.pci_width is None:
        return skipped(id_, "its PCI link width is not reported")
    now, most = gpu.pci_width
    generation = f", generation {gpu.pci_generation[0]} of {gpu.pci_generation[1]}" if gpu.pci_generation else ""
    if 0 < now < most:
        return warned(
            id_,
            f"{now} of {most} lanes{generation}: copies from the host are up to {most / now:.0f} times slower",
            "Put the card into a full-width slot, and look for bent pins or a riser cable",
        )
    return passed(id_, f"{now} of {most} lanes{generation}")  # the generation falls while a GPU idles


def _persistence(gpu: Gpu) -> Check:
    id_ = "gpu.persistence"
    if gpu.persistence is None:
        return skipped(id_, "its persistence mode is not reported")
    if not gpu.persistence:
        return warned(id_, "off: the first use of the GPU takes seconds longer", "sudo nvidia-smi -pm 1")
    return passed(id_, "on")


def _power_cap(gpu: Gpu) -> Check:
    id_, limit, default = "gpu.power-cap", gpu.power_limit_watts, gpu.power_default_watts
    if limit is None or default is None:
        return skipped(id_, "its power limit is not reported")
    if limit < default:
        return warned(
            id_,
            f"limited to {limit:.0f} W of {default:.0f} W",
            f"sudo nvidia-smi -i {gpu.index} -pl {default:.0f}, if its cooling allows",
        )
    return passed(id_, f"{limit:.0f} W")


def _throttling(gpu: Gpu) -> Check:
    id_ = "gpu.throttling"
    if gpu.throttle_reasons is None:
        return skipped(id_, "throttling is not reported")
    if gpu.throttle_reasons:
        hot = f" at {gpu.temperature_celsius} °C" if gpu.temperature_celsius is not None else ""
        return warned(
            id_,
            f"its clocks are throttled{hot}: {', '.join(gpu.throttle_reasons)}",
            "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER; then check its cooling, power limit and supply",
        )
    return passed(id_, "not throttled")


def _ecc(gpu: Gpu) -> Check:
    id_ = "gpu.ecc"
    if gpu.ecc_errors is None:
        return skipped(id_, "no error correction, or not reported")
    if gpu.ecc_errors:
        return failed(
            id_,
            f"{units.many(gpu.ecc_errors, 'memory error')} not corrected",
            f"sudo nvidia-smi -i {gpu.index} -r; if they come back, have the card replaced",
        )
    return passed(id_, "no uncorrected memory error")


def _mig(gpu: Gpu) -> Check:
    id_ = "gpu.mig"
    if gpu.mig is None:
        return skipped(id_, "it does not support MIG")
    if gpu.mig:
        return warned(
            id_,
            "it is divided (MIG): a framework sees one part, and parts do not report utilisation",
            f"CUDA_VISIBLE_DEVICES=MIG-... of nvidia-smi -L, or undivided: sudo nvidia-smi -i {gpu.index} -mig 0",
        )
    return passed(id_, "not divided")


def _peers(gpu: Gpu) -> Check:
    id_ = "gpu.peer-access"
    if gpu.peers is None:
        return skipped(id_, "peer access is not reported")
    if not gpu.peers:
        return warned(
            id_,
            "it can't read other GPUs' memory directly, so transfers go through the host",
            "nvidia-smi topo -p2p r shows why; often the platform, in a virtual machine or with ACS on",
        )
    return passed(id_, f"reaches {', '.join(map(str, gpu.peers))}")


_PER_GPU = (_link, _persistence, _power_cap, _throttling, _ecc, _mig)
