"""Checks of NVIDIA's driver and of each GPU."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark import units
from trainmark.measure.host import Host
from trainmark.measure.nvidia.nvml import NAME
from trainmark.measure.nvidia.visible import HIDE_ALL, VISIBLE, shown_by
from trainmark.measure.vendor import Driver, Gpu, Installed
from trainmark.study.doctor.check import Check, Finding, failed, passed, skipped, warned

_INSTALL_DRIVER = (
    "sudo ubuntu-drivers install (elsewhere your distribution's package of NVIDIA's driver), then "
    "reboot"
)
_PASS_IN = {
    "docker": "docker run --gpus all, with the NVIDIA Container Toolkit on the host",
    "podman": "podman run --device nvidia.com/gpu=all, with the NVIDIA Container Toolkit on the "
    "host",
    "kubernetes": "resources: limits: nvidia.com/gpu: 1 in the pod's specification",
    "apptainer": "apptainer exec --nv",
}


def checks(host: Host, found: Driver) -> Iterator[Check]:
    """Run all checks of NVIDIA's driver and GPUs."""
    yield Check("host.wsl", *wsl(host))
    yield Check("gpu.driver", *driver(host, found))
    yield Check("gpu.visible-devices", *visible(host, found))
    answering = [gpu for gpu in found.gpus if gpu.problem is None]
    for gpu in found.gpus:
        if gpu.problem is not None:
            yield Check(f"gpu.answers.{gpu.index}", *_lost(gpu, gpu.problem))
    for gpu in answering:
        yield Check(f"gpu.pci-link.{gpu.index}", *_link(gpu))
        yield Check(f"gpu.persistence.{gpu.index}", *_persistence(gpu))
        yield Check(f"gpu.power-cap.{gpu.index}", *_power_cap(gpu))
        yield Check(f"gpu.throttling.{gpu.index}", *_throttling(gpu))
        yield Check(f"gpu.ecc.{gpu.index}", *_ecc(gpu))
        yield Check(f"gpu.mig.{gpu.index}", *_mig(gpu))
        if len(answering) > 1:
            yield Check(f"gpu.peer-access.{gpu.index}", *_peers(gpu))
        yield Check(f"gpu.processes.{gpu.index}", *_foreign(host, gpu))


def wsl(host: Host) -> Finding:
    """Under Windows, whether a GPU is passed through."""
    if not host.wsl:
        return skipped("not under WSL")
    inside = ", ".join(_installed(host).wsl_drivers)
    if inside and not host.container:  # a container gets the driver of Windows
        return warned(
            f"a Linux driver is installed inside WSL ({inside}), which can't drive Windows' GPU "
            "and may be loaded instead of the one in /usr/lib/wsl/lib",
            "sudo apt-get purge 'libnvidia-compute-*' 'nvidia-driver-*', then in PowerShell: wsl "
            "--shutdown",
        )
    if host.wsl_gpu:
        return passed("a GPU is passed through (/dev/dxg)")
    return warned(
        "WSL has no /dev/dxg, so no GPU is visible",
        "Install NVIDIA's Windows driver (none inside WSL), then in PowerShell: wsl --update; "
        "wsl --shutdown",
    )


def driver(host: Host, found: Driver) -> Finding:
    """Whether NVIDIA's driver is installed and answers."""
    if found.problem is None and found.gpus:
        return _answering(host, found)
    problem = found.problem or "it lists no GPU"
    if host.wsl:
        return _under_wsl(host, problem)
    if not _has_gpu(host):
        fix = "If there should be one: lspci | grep -i nvidia"
        return skipped(f"no NVIDIA GPU on this machine (NVML: {problem})", fix)
    if "mismatch" in problem.lower():
        running = _installed(host).module or "another version"
        return failed(
            f"{problem}: the kernel still runs {running}, not the installed version", "sudo reboot"
        )
    if host.container:
        return failed(
            "this machine has a GPU, but its driver is not passed into the container "
            f"({host.container}): {problem}",
            _PASS_IN.get(host.container, _PASS_IN["docker"]),
        )
    tool = _installed(host).tool
    if tool:
        return failed(
            f"nvidia-smi is at {tool}, but NVML does not answer: {problem}",
            "Run nvidia-smi: if it fails too, sudo modprobe nvidia; otherwise add the folder of "
            "libnvidia-ml.so.1 to LD_LIBRARY_PATH",
        )
    return failed(f"an NVIDIA GPU is on the bus, but no driver answers: {problem}", _INSTALL_DRIVER)


def _lost(gpu: Gpu, problem: str) -> Finding:
    if "permission" in problem.lower():
        return skipped(f"GPU {gpu.index} is not accessible: {problem}")
    fix = f"sudo nvidia-smi -i {gpu.index} -r, or reboot; if it comes back: dmesg | grep -i xid"
    return failed(f"GPU {gpu.index} does not answer: {problem}", fix)


def visible(host: Host, found: Driver) -> Finding:
    """Whether the environment hides GPUs from the frameworks."""
    value = host.environment.get(VISIBLE)
    passed_in = host.environment.get("NVIDIA_VISIBLE_DEVICES")
    if passed_in in ("void", "none", "") and host.container and not found.gpus and _has_gpu(host):
        lacking = f"NVIDIA_VISIBLE_DEVICES={passed_in!r}, so the container runtime passes no GPU"
        return failed(lacking, _PASS_IN.get(host.container, _PASS_IN["docker"]))
    if not found.gpus:
        return skipped("no GPU to hide")
    if value is None:
        return passed(f"{VISIBLE} is not set, so every GPU is visible")
    shown, problem = shown_by(value, found)
    if problem is None:
        return passed(f"{VISIBLE}={value!r}: {units.many(len(shown), 'GPU')}")
    finding = warned if shown or value.strip() in HIDE_ALL else failed
    return finding(
        f"{VISIBLE}={value!r}: {problem}", f"unset {VISIBLE}, or use the names of: nvidia-smi -L"
    )


def _answering(host: Host, found: Driver) -> Finding:
    if found.cuda is None:
        fix = "Reinstall the driver with its compute libraries (libnvidia-compute or cuda-drivers)"
        if host.container:
            fix = (
                "In a container: -e NVIDIA_DRIVER_CAPABILITIES=compute,utility; otherwise "
                "reinstall the driver"
            )
        return failed(
            f"driver {found.version} answers, but its CUDA library (libcuda.so.1) is missing", fix
        )
    cuda = f"{found.cuda[0]}.{found.cuda[1]}"
    return passed(
        f"driver {found.version}, supports CUDA up to {cuda}, {units.many(len(found.gpus), 'GPU')}"
    )


def _under_wsl(host: Host, problem: str) -> Finding:
    if not host.wsl_gpu:
        return skipped(f"no GPU is passed into WSL (NVML: {problem})")
    return skipped(
        f"a GPU is passed into WSL, but no NVIDIA driver answers (NVML: {problem})",
        "If it is an NVIDIA GPU: install its Windows driver (none inside WSL), and "
        "LD_LIBRARY_PATH=/usr/lib/wsl/lib",
    )


def _has_gpu(host: Host) -> bool:
    """Whether the bus or a device file shows an NVIDIA GPU; a package does not count."""
    return bool((host.gpus_on_bus or {}).get(NAME)) or bool(_installed(host).device_files)


def _installed(host: Host) -> Installed:
    return host.installed.get(NAME, Installed())


def _foreign(host: Host, gpu: Gpu) -> Finding:
    if gpu.processes is None or (host.container and not gpu.processes):
        where = " in a container" if host.container else ""
        return skipped(f"other users' processes are not visible{where}")
    if gpu.processes:
        listed = ", ".join(map(str, gpu.processes))
        return warned(f"other processes are using it: {listed}", "Wait, or stop them: nvidia-smi")
    return passed("no other process is using it")


def _link(gpu: Gpu) -> Finding:
    if gpu.pci_width is None:
        return skipped("its PCI link width is not reported")
    now, most = gpu.pci_width
    lanes = f"{now} of {most} lanes"
    if gpu.pci_generation:
        lanes += f", generation {gpu.pci_generation[0]} of {gpu.pci_generation[1]}"
    if 0 < now < most:
        slower = f"copies from the host are up to {most / now:.0f} times slower"
        fix = "Move the card to a full-width slot, and check for bent pins or a riser cable"
        return warned(f"{lanes}: {slower}", fix)
    return passed(lanes)  # the generation drops while a GPU is idle


def _persistence(gpu: Gpu) -> Finding:
    if gpu.persistence is None:
        return skipped("its persistence mode is not reported")
    if not gpu.persistence:
        return warned("off: the first use of the GPU takes seconds longer", "sudo nvidia-smi -pm 1")
    return passed("on")


def _power_cap(gpu: Gpu) -> Finding:
    limit = gpu.power_limit_watts
    default = gpu.power_default_watts
    if limit is None or default is None:
        return skipped("its power limit is not reported")
    if limit < default:
        fix = f"sudo nvidia-smi -i {gpu.index} -pl {default:.0f}, if its cooling allows"
        return warned(f"limited to {limit:.0f} W of {default:.0f} W", fix)
    return passed(f"{limit:.0f} W")


def _throttling(gpu: Gpu) -> Finding:
    if gpu.throttle_reasons is None:
        return skipped("throttling is not reported")
    if gpu.throttle_reasons:
        hot = f" at {gpu.temperature_celsius} °C" if gpu.temperature_celsius is not None else ""
        fix = (
            "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER; then check its cooling, power "
            "limit and supply"
        )
        return warned(f"its clocks are throttled{hot}: {', '.join(gpu.throttle_reasons)}", fix)
    return passed("not throttled")


def _ecc(gpu: Gpu) -> Finding:
    if gpu.ecc_errors is None:
        return skipped("no error correction, or not reported")
    if gpu.ecc_errors:
        fix = f"sudo nvidia-smi -i {gpu.index} -r; if they come back, have the card replaced"
        return failed(units.many(gpu.ecc_errors, "uncorrected memory error"), fix)
    return passed("no uncorrected memory error")


def _mig(gpu: Gpu) -> Finding:
    if gpu.mig is None:
        return skipped("it does not support MIG")
    if gpu.mig:
        return warned(
            "MIG is enabled: a framework sees one instance, and instances do not report "
            "utilisation",
            "CUDA_VISIBLE_DEVICES=MIG-... from nvidia-smi -L, or disable MIG: sudo nvidia-smi "
            f"-i {gpu.index} -mig 0",
        )
    return passed("MIG is off")


def _peers(gpu: Gpu) -> Finding:
    if gpu.peers is None:
        return skipped("peer access is not reported")
    if not gpu.peers:
        return warned(
            "it can't read other GPUs' memory directly, so transfers go through the host",
            "nvidia-smi topo -p2p r shows why; often it is a virtual machine, or PCIe ACS is "
            "enabled",
        )
    return passed(f"reaches {', '.join(map(str, gpu.peers))}")
