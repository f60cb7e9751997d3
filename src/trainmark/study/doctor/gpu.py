"""Checks of NVIDIA's driver and of each GPU."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark import units
from trainmark.measure.host import Host
from trainmark.measure.nvidia import Driver, Gpu
from trainmark.study.doctor.check import Check, failed, passed, skipped, warned

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_HIDE_ALL = ("", "-1", "void", "none", "NoDevFiles")
_LARGEST_IDLE_P_STATE = 8
_INSTALL_DRIVER = "sudo apt install nvidia-driver-580 (or what your distribution calls it), then restart"


def driver(host: Host, found: Driver) -> Check:
    """Whether NVIDIA's driver is there and answers."""
    id_ = "gpu.driver"
    there = bool(host.nvidia_on_bus) or bool(host.nvidia_device_files) or host.nvidia_module is not None
    if found.problem is None and found.gpus:
        cuda = f", serves CUDA up to {found.cuda[0]}.{found.cuda[1]}" if found.cuda else ""
        return passed(id_, f"driver {found.version}{cuda}, {units.many(len(found.gpus), 'GPU')}")
    problem = found.problem or "it lists no GPU"
    if not there and host.nvidia_smi is None:
        return skipped(
            id_, f"no NVIDIA GPU on this machine (NVML: {problem})", "If there should be one: lspci | grep -i nvidia"
        )
    if "mismatch" in problem.lower():
        return failed(
            id_,
            f"{problem}: the kernel still runs another driver ({host.nvidia_module or 'unknown'}) than is installed",
            "sudo reboot",
        )
    if host.container:
        return failed(
            id_,
            f"a GPU is on this machine, but its driver is not passed into the {host.container} container ({problem})",
            "docker run --gpus all, with the NVIDIA Container Toolkit installed on the host",
        )
    if host.nvidia_smi:
        return failed(
            id_,
            f"nvidia-smi is at {host.nvidia_smi}, but NVML does not answer: {problem}",
            "Run nvidia-smi: if it fails too, sudo modprobe nvidia; "
            "else put the folder of libnvidia-ml.so.1 into LD_LIBRARY_PATH",
        )
    return failed(id_, f"an NVIDIA GPU is on the bus, but no driver answers: {problem}", _INSTALL_DRIVER)


def visible(host: Host, found: Driver) -> Check:
    """Whether the environment hides GPUs from the frameworks."""
    id_, value = "gpu.visible-devices", host.environment.get(_VISIBLE)
    passed_in = host.environment.get("NVIDIA_VISIBLE_DEVICES")
    if passed_in in ("void", "none", "") and host.container and not found.gpus:
        return failed(
            id_,
            f"NVIDIA_VISIBLE_DEVICES={passed_in!r}, so the container runtime passes no GPU in",
            "docker run --gpus all, or -e NVIDIA_VISIBLE_DEVICES=all",
        )
    if value is None and not found.gpus:
        return skipped(id_, f"{_VISIBLE} is not set, and there is no GPU")
    if value is None:
        return passed(id_, f"{_VISIBLE} is not set, so every GPU is visible")
    hint = f"unset {_VISIBLE}"
    if value.strip() in _HIDE_ALL:
        return warned(id_, f"{_VISIBLE}={value!r} hides every GPU from the frameworks", hint)
    if value.strip() == "all":
        return failed(id_, f"{_VISIBLE}='all' is no device, so CUDA sees none ('all' is a word of containers)", hint)
    shown, unknown = _devices_of(value, found)
    if unknown is not None:
        return warned(
            id_,
            f"{_VISIBLE}={value!r}: {unknown!r} is no GPU of this machine, so CUDA sees only the {shown} before it",
            f"{hint}, or name GPUs as in: nvidia-smi -L",
        )
    return passed(id_, f"{_VISIBLE}={value!r}: {units.many(shown, 'GPU')}")


def each(found: Driver, own: frozenset[int] = frozenset()) -> Iterator[Check]:
    """All that is asked of every GPU.

    Args:
        found: the GPUs.
        own: process ids that are not foreign.
    """
    several = len(found.gpus) > 1
    for gpu in found.gpus:
        for check in (*_PER_GPU, *(_AMONG_GPUS if several else ())):
            yield _of(gpu, check(gpu), several)
        yield _of(gpu, foreign(gpu, own), several)


def foreign(gpu: Gpu, own: frozenset[int]) -> Check:
    """Whether somebody else computes on it."""
    id_ = "gpu.processes"
    if gpu.processes is None:
        return skipped(id_, "its processes are not visible")
    others = sorted(set(gpu.processes) - own)
    if others:
        return warned(
            id_,
            f"others compute on it, by process id: {', '.join(map(str, others))}",
            "Wait, or end what runs: nvidia-smi",
        )
    return passed(id_, "nobody else computes on it")


def _of(gpu: Gpu, check: Check, several: bool) -> Check:
    if not several:
        return check
    return Check(f"{check.id}.{gpu.index}", check.status, f"GPU {gpu.index}: {check.found}", check.fix)


def _devices_of(value: str, found: Driver) -> tuple[int, str | None]:
    """How many GPUs ``CUDA_VISIBLE_DEVICES`` shows, and its first word that means none."""
    for shown, word in enumerate(part.strip() for part in value.split(",")):
        known = (
            (word.isdecimal() and int(word) < len(found.gpus))
            or word.startswith("MIG-")
            or any(gpu.uuid and len(word) > 4 and gpu.uuid.startswith(word) for gpu in found.gpus)
        )
        if not known:
            return shown, word
    return len(value.split(",")), None


def _link(gpu: Gpu) -> Check:
    id_ = "gpu.pci-link"
    if gpu.pci_width is None:
        return skipped(id_, "the width of its PCI link is not told")
    now, most = gpu.pci_width
    generation = f", generation {gpu.pci_generation[0]} of {gpu.pci_generation[1]}" if gpu.pci_generation else ""
    if now < most:
        return warned(
            id_,
            f"{now} of {most} lanes{generation}: copies from the host are up to {most / now:.0f} times slower",
            "Put the card into a full-width slot, and look for bent pins or a riser cable",
        )
    return passed(id_, f"{now} of {most} lanes{generation}")  # the generation falls while a GPU idles


def _persistence(gpu: Gpu) -> Check:
    id_ = "gpu.persistence"
    if gpu.persistence is None:
        return skipped(id_, "its persistence mode is not told")
    if not gpu.persistence:
        return warned(id_, "off: the first use of the GPU takes seconds longer", "sudo nvidia-smi -pm 1")
    return passed(id_, "on")


def _power_cap(gpu: Gpu) -> Check:
    id_, limit, default = "gpu.power-cap", gpu.power_limit_watts, gpu.power_default_watts
    if limit is None or default is None:
        return skipped(id_, "its power limit is not told")
    if limit < default:
        return warned(
            id_,
            f"limited to {limit:.0f} W of {default:.0f} W",
            f"sudo nvidia-smi -i {gpu.index} -pl {default:.0f}, if its cooling allows",
        )
    return passed(id_, f"{limit:.0f} W")


def _p_state(gpu: Gpu) -> Check:
    id_ = "gpu.p-state"
    if gpu.p_state is None or gpu.p_state > 15:
        return skipped(id_, "its performance state is not told")
    return passed(id_, f"P{gpu.p_state}" + (" (idle)" if gpu.p_state >= _LARGEST_IDLE_P_STATE else ""))


def _throttling(gpu: Gpu) -> Check:
    id_ = "gpu.throttling"
    if gpu.throttle_reasons is None:
        return skipped(id_, "whether it is held back is not told")
    if gpu.throttle_reasons:
        hot = f" at {gpu.temperature_celsius} °C" if gpu.temperature_celsius is not None else ""
        return warned(
            id_,
            f"its clocks are held back{hot}: {', '.join(gpu.throttle_reasons)}",
            "See to its cooling and power supply: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
        )
    return passed(id_, "not held back")


def _ecc(gpu: Gpu) -> Check:
    id_ = "gpu.ecc"
    if gpu.ecc_errors is None:
        return skipped(id_, "it has no error correction, or does not tell")
    if gpu.ecc_errors:
        return failed(
            id_,
            f"{units.many(gpu.ecc_errors, 'memory error')} that could not be corrected",
            f"sudo nvidia-smi -i {gpu.index} -r; if they come back, have the card replaced",
        )
    return passed(id_, "no uncorrected memory error")


def _mig(gpu: Gpu) -> Check:
    id_ = "gpu.mig"
    if gpu.mig is None:
        return skipped(id_, "it can't be divided")
    if gpu.mig:
        return warned(
            id_,
            "it is divided (MIG): a framework sees one part, and utilisation is not told for parts",
            f"CUDA_VISIBLE_DEVICES=MIG-... of nvidia-smi -L, or undivided: sudo nvidia-smi -i {gpu.index} -mig 0",
        )
    return passed(id_, "not divided")


def _peers(gpu: Gpu) -> Check:
    id_ = "gpu.peer-access"
    if gpu.peers is None:
        return skipped(id_, "whether it reaches other GPUs is not told")
    if not gpu.peers:
        return warned(
            id_,
            "it can't read other GPUs' memory directly, so exchanges go through the host",
            "nvidia-smi topo -p2p r tells why; in a virtual machine, or with ACS on, it often is the platform",
        )
    return passed(id_, f"reaches {', '.join(map(str, gpu.peers))}")


def _numa(gpu: Gpu) -> Check:
    id_ = "gpu.numa"
    if gpu.numa_node is None or gpu.numa_node < 0:
        return skipped(id_, "which memory it is near to is not told")
    return passed(id_, f"near NUMA node {gpu.numa_node}")


_PER_GPU = (_link, _persistence, _power_cap, _p_state, _throttling, _ecc, _mig)
_AMONG_GPUS = (_peers, _numa)
