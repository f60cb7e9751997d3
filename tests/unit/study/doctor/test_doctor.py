"""The findings of doctor on broken set-ups, and none on a good one."""

from __future__ import annotations

import dataclasses

import pytest

from trainmark.backends.examination import Examination
from trainmark.execute.parent.examine import Framework
from trainmark.measure.host import Limits
from trainmark.measure.vendor import Driver, Gpu, Installed
from trainmark.study.doctor import Facts, diagnose, gather

from .facts import DRIVER, GOOD, GPU, HOST, JAX, NO_GPU, TORCH, examined, named, on, product

TWO_GPUS = dataclasses.replace(DRIVER, gpus=(GPU, dataclasses.replace(GPU, index=1, uuid="GPU-2")))

BROKEN: dict[str, tuple[Facts, str, str, str, str]] = {
    # what is broken: facts, check, status, found, fix
    "driver not loaded": (
        on(
            driver=Driver(problem="Driver Not Loaded"),
            host={"installed": {"NVIDIA": Installed(tool="/usr/bin/nvidia-smi")}},
        ),
        "gpu.driver",
        "FAIL",
        "NVML does not answer: Driver Not Loaded",
        "modprobe nvidia",
    ),
    "no driver at all": (
        on(driver=NO_GPU["driver"], host={"installed": {}}),
        "gpu.driver",
        "FAIL",
        "on the bus",
        "ubuntu-drivers",
    ),
    "driver updated under a running kernel": (
        on(
            driver=Driver(problem="Driver/library version mismatch"),
            host={"installed": {"NVIDIA": Installed(module="570.86.15")}},
        ),
        "gpu.driver",
        "FAIL",
        "570.86.15",
        "reboot",
    ),
    "container without a GPU": (
        on(driver=NO_GPU["driver"], host={"container": "docker", "installed": {}}),
        "gpu.driver",
        "FAIL",
        "container (docker)",
        "docker run --gpus all",
    ),
    "container told to have none": (
        on(
            driver=NO_GPU["driver"],
            host={
                "container": "docker",
                "installed": {},
                "environment": {"NVIDIA_VISIBLE_DEVICES": "void"},
            },
        ),
        "gpu.visible-devices",
        "FAIL",
        "'void'",
        "--gpus all",
    ),
    "nvidia-smi without NVML": (
        on(driver=NO_GPU["driver"]),
        "gpu.driver",
        "FAIL",
        "NVML Shared Library Not Found",
        "LD_LIBRARY_PATH",
    ),
    "hidden by -1": (
        on(host={"environment": {"CUDA_VISIBLE_DEVICES": "-1"}}),
        "gpu.visible-devices",
        "WARN",
        "hides every GPU",
        "unset CUDA_VISIBLE_DEVICES",
    ),
    "hidden by a container's word": (
        on(host={"environment": {"CUDA_VISIBLE_DEVICES": "all"}}),
        "gpu.visible-devices",
        "FAIL",
        "'all' is not a GPU",
        "unset CUDA_VISIBLE_DEVICES",
    ),
    "a GPU that is not there": (
        on(host={"environment": {"CUDA_VISIBLE_DEVICES": "0,3"}}),
        "gpu.visible-devices",
        "WARN",
        "'3' is not a GPU",
        "nvidia-smi -L",
    ),
    "another machine's UUID": (
        on(host={"environment": {"CUDA_VISIBLE_DEVICES": "GPU-00000000"}}),
        "gpu.visible-devices",
        "FAIL",
        "those before it: none",
        "nvidia-smi -L",
    ),
    "GPU too new for the build": (
        on(torch=examined(architectures=("sm_50", "sm_80", "sm_86"))),
        "torch.architecture",
        "FAIL",
        "no kernel image is available",
        "pip install",
    ),
    "GPU too old for the build": (
        on(gpu={"compute_capability": (6, 1), "name": "GTX 1080"}),
        "torch.architecture",
        "FAIL",
        "GTX 1080) is sm_61",
        "a build for an older CUDA",
    ),
    "compiled at first use": (
        on(torch=examined(architectures=("sm_80", "compute_80"))),
        "torch.architecture",
        "WARN",
        "compiled at first use",
        "ComputeCache",
    ),
    "driver too old": (
        on(driver=dataclasses.replace(DRIVER, version="535.183.01", cuda=(12, 2))),
        "torch.cuda-driver",
        "FAIL",
        "supports CUDA up to 12.2",
        "newer driver",
    ),
    "CPU build": (
        on(
            torch=examined(
                built_for=None, architectures=None, devices=("cpu",), products=(product("cpu"),)
            )
        ),
        "torch.gpu",
        "FAIL",
        "built for the CPU only",
        "--force-reinstall torch",
    ),
    "one framework is blind": (
        on(
            torch=examined(blind="CUDA unknown error", devices=("cpu",), products=(product("cpu"),))
        ),
        "torch.gpu",
        "FAIL",
        "CUDA unknown error",
        "fresh environment",
    ),
    "frameworks that differ": (
        on(torch=examined(devices=("cpu",), products=(product("cpu"),))),
        "frameworks.agree",
        "WARN",
        "torch 0, jax 1",
        "checks above",
    ),
    "a missing library": (
        on(
            torch=examined(
                products=(
                    product("cpu"),
                    product(
                        "cuda:0",
                        values=None,
                        problem="libcudnn_ops.so.9: cannot open shared object file: "
                        "No such file or directory",
                    ),
                )
            )
        ),
        "torch.libraries",
        "FAIL",
        "libcudnn_ops.so.9 is missing",
        "Reinstall",
    ),
    "a library twice": (
        on(
            host={"environment": {"LD_LIBRARY_PATH": "/usr/lib"}},
            torch=dataclasses.replace(
                TORCH,
                libraries={"cudnn": ["/usr/lib/libcudnn.so.8", "/venv/cudnn/lib/libcudnn.so.9"]},
            ),
        ),
        "torch.libraries",
        "WARN",
        "/usr/lib/libcudnn.so.8",
        "unset LD_LIBRARY_PATH",
    ),
    "wrong sums": (
        on(
            torch=examined(
                products=(product("cpu"), product("cuda:0", values=(22.0, 28.0, 49.0, 0.0)))
            )
        ),
        "torch.product.cuda:0",
        "FAIL",
        "is 22 28 49 0",
        "diag",
    ),
    "computed elsewhere": (
        on(torch=examined(products=(product("cpu"), product("cuda:0", placed_on="/device:CPU:0")))),
        "torch.product.cuda:0",
        "FAIL",
        "computed on /device:CPU:0",
        "torch.gpu",
    ),
    "a crash on import": (
        on(
            torch=Framework(
                "torch",
                True,
                "pip install torch",
                problem="the process was killed by SIGSEGV",
                seconds=1.0,
            )
        ),
        "torch.import",
        "FAIL",
        "SIGSEGV",
        "pip install torch",
    ),
    "a plug-in for another version": (
        on(
            torch=Framework(
                "torch",
                True,
                "pip install torch",
                problem="the plug-in 'x' is old: found that. Update it, or change it to "
                "match trainmark.backends.base.",
            )
        ),
        "torch.import",
        "FAIL",
        "torch failed: the plug-in 'x' is old: found that",
        "Update it, or change it to match trainmark.backends.base.",
    ),
    "a crash at the first use of the GPU": (
        on(
            torch=examined(
                products=(
                    product("cpu"),
                    product("cuda:0", values=None, problem="the process was killed by SIGABRT"),
                ),
                problem="the process was killed by SIGABRT",
            )
        ),
        "torch.product.cuda:0",
        "FAIL",
        "SIGABRT",
        "torch.libraries",
    ),
    "a library that only the log names": (
        on(
            torch=examined(
                devices=("cpu",),
                printed="Could not load library libcudnn_cnn.so.9. Error: no such file",
                problem="x",
            )
        ),
        "torch.libraries",
        "FAIL",
        "libcudnn_cnn.so.9",
        "Reinstall",
    ),
    "blind although nothing is hidden": (
        on(
            torch=examined(blind="CUDA unknown error", devices=("cpu",)),
            host={"environment": {"CUDA_VISIBLE_DEVICES": "0"}},
        ),
        "torch.gpu",
        "FAIL",
        "sees 0 of 1 GPU: CUDA unknown error",
        "Reinstall",
    ),
    "hidden by its own setting": (
        on(torch=examined(hidden_by="JAX_PLATFORMS=cpu", devices=("cpu",))),
        "torch.gpu",
        "WARN",
        "JAX_PLATFORMS=cpu",
        "unset JAX_PLATFORMS",
    ),
    "divided without a part": (
        on(gpu={"mig": True}, torch=examined(devices=("cpu",))),
        "torch.gpu",
        "FAIL",
        "no MIG instance",
        "nvidia-smi mig",
    ),
    "a driver too old to compile": (
        on(
            driver=dataclasses.replace(DRIVER, version="535.183.01", cuda=(12, 2)),
            torch=examined(built_for="CUDA 12.5", architectures=("sm_80", "sm_89", "compute_80")),
        ),
        "torch.architecture",
        "FAIL",
        "older than CUDA 12.5",
        "newer driver",
    ),
    "a lost GPU": (
        on(driver=dataclasses.replace(DRIVER, gpus=(GPU, Gpu(1, problem="GPU is lost")))),
        "gpu.answers.1",
        "FAIL",
        "GPU is lost",
        "reboot",
    ),
    "a driver without CUDA": (
        on(driver=dataclasses.replace(DRIVER, cuda=None), host={"container": "docker"}),
        "gpu.driver",
        "FAIL",
        "libcuda.so.1",
        "compute,utility",
    ),
    "apptainer without --nv": (
        on(driver=NO_GPU["driver"], host={"container": "apptainer", "installed": {}}),
        "gpu.driver",
        "FAIL",
        "container (apptainer)",
        "--nv",
    ),
    "half the lanes": (
        on(gpu={"pci_width": (4, 16)}),
        "gpu.pci-link.0",
        "WARN",
        "4 of 16 lanes",
        "slot",
    ),
    "a power cap": (
        on(gpu={"power_limit_watts": 350.0}),
        "gpu.power-cap.0",
        "WARN",
        "350 W of 700 W",
        "nvidia-smi -i 0 -pl 700",
    ),
    "too hot": (
        on(gpu={"throttle_reasons": ("thermal slowdown by hardware",), "temperature_celsius": 92}),
        "gpu.throttling.0",
        "WARN",
        "at 92 °C: thermal",
        "cooling",
    ),
    "memory errors": (
        on(gpu={"ecc_errors": 3}),
        "gpu.ecc.0",
        "FAIL",
        "3 uncorrected memory errors",
        "-r",
    ),
    "no persistence": (
        on(gpu={"persistence": False}),
        "gpu.persistence.0",
        "WARN",
        "off",
        "sudo nvidia-smi -pm 1",
    ),
    "divided": (on(gpu={"mig": True}), "gpu.mig.0", "WARN", "MIG is enabled", "-mig 0"),
    "somebody else's GPU": (
        on(gpu={"processes": (4711, 4712)}),
        "gpu.processes.0",
        "WARN",
        "4711, 4712",
        "nvidia-smi",
    ),
    "a quota": (
        on(host={"cpu_quota": 1.5}),
        "host.cpu-quota",
        "WARN",
        "1.5 of 16 visible cores",
        "trainmark run --threads 1",
    ),
    "powersave": (
        on(host={"governors": ("powersave",)}),
        "host.cpu-governor",
        "WARN",
        "powersave",
        "cpupower",
    ),
    "busy": (on(busy=0.7), "host.load", "WARN", "70% of the machine", "top"),
    "docker's shared memory": (
        on(host={"shared_memory_bytes": 64 * 2**20}),
        "host.shared-memory",
        "WARN",
        "64.0 MiB",
        "--shm-size",
    ),
    "locked memory": (
        on(driver=TWO_GPUS, host={"limits": Limits(65536.0, 8.0 * 2**20)}),
        "host.memlock",
        "WARN",
        "64.0 KiB",
        "memlock=-1",
    ),
    "a small stack": (
        on(host={"limits": Limits(float("inf"), 2.0 * 2**20)}),
        "host.stack",
        "WARN",
        "2.00 MiB",
        "ulimit -s",
    ),
    "swapping": (
        on(host={"swap_bytes": (3 * 2**30, 4 * 2**30)}),
        "host.memory",
        "WARN",
        "3.00 GiB of 4.00 GiB",
        "swapoff",
    ),
    "WSL without a GPU": (
        on(host={"wsl": True, "installed": {}}),
        "host.wsl",
        "WARN",
        "/dev/dxg",
        "wsl --update",
    ),
    "WSL with a Linux driver": (
        on(
            host={
                "wsl": True,
                "wsl_gpu": True,
                "installed": {"NVIDIA": Installed(wsl_drivers=("/usr/lib64/libcuda.so.1",))},
            }
        ),
        "host.wsl",
        "WARN",
        "a Linux driver is installed inside WSL (/usr/lib64/libcuda.so.1)",
        "apt-get purge",
    ),
    "a Python for Intel on a Mac": (
        on(host={"translated": True}),
        "host.rosetta",
        "FAIL",
        "Rosetta",
        "arm64",
    ),
    "locked memory for InfiniBand": (
        on(host={"infiniband": ("mlx5_0",), "limits": Limits(65536.0, 8.0 * 2**20)}),
        "host.memlock",
        "WARN",
        "64.0 KiB",
        "in Slurm before you submit",
    ),
    "a coarse clock": (
        on(host={"clock_resolution_seconds": 0.0156}),
        "host.clock",
        "WARN",
        "15.6 ms",
        "clocksource",
    ),
    "a clock that goes back": (
        on(host={"clock_resolution_seconds": -0.2}),
        "host.clock",
        "FAIL",
        "went back by 0.2 s",
        "clock",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_set_up_is_named_with_its_fix(what: str) -> None:
    facts, id_, status, found, fix = BROKEN[what]
    check = named(facts, id_)
    assert check.status == status, check
    assert found in check.found
    assert fix in check.fix


def test_a_good_machine_has_nothing_to_fix() -> None:
    checks = list(diagnose(GOOD))
    assert [check for check in checks if check.status in ("WARN", "FAIL")] == []
    assert {
        "gpu.driver",
        "torch.gpu",
        "torch.architecture",
        "torch.product.cuda:0",
        "frameworks.agree",
    } <= {check.id for check in checks if check.status == "PASS"}


def test_a_framework_without_a_gpu_build_gets_no_warning() -> None:
    found = examined(
        built_for=None, architectures=None, devices=("cpu",), products=(product("cpu"),)
    )
    found = dataclasses.replace(found, name="numpy", install_gpu="")
    assert {check.id: check.status for check in diagnose(on(torch=found))}["numpy.gpu"] == "SKIP"
    # how a plug-in is installed is not known
    plugin = dataclasses.replace(examined(), name="mxnet", install_gpu="")
    assert {check.id: check.status for check in diagnose(on(torch=plugin))}["mxnet.gpu"] == "PASS"


def without_gpu(**host: object) -> Facts:
    cpu_torch = examined(
        built_for=None, architectures=None, devices=("cpu",), products=(product("cpu"),)
    )
    cpu_torch = dataclasses.replace(cpu_torch, libraries={})
    return Facts(
        dataclasses.replace(HOST, **NO_GPU["host"] | host), NO_GPU["driver"], 0.0, (cpu_torch,)
    )


@pytest.mark.parametrize(
    "host",
    [
        {},
        # an image for GPUs on a machine without
        {"installed": {"NVIDIA": Installed(tool="/usr/bin/nvidia-smi")}},
        {"environment": {"CUDA_VISIBLE_DEVICES": "all"}},
        {"environment": {"NVIDIA_VISIBLE_DEVICES": "void"}, "container": "kubernetes"},
        {"wsl": True, "wsl_gpu": True},  # of another maker
    ],
)
def test_a_machine_without_a_gpu_gets_no_warning(host: dict[str, object]) -> None:
    checks = list(diagnose(without_gpu(**host)))
    assert [check for check in checks if check.status in ("WARN", "FAIL")] == []
    assert named(without_gpu(**host), "gpu.driver").status == "SKIP"


def test_nothing_that_was_not_read_passes() -> None:
    unread = {
        "governors": (),
        "limits": Limits(),
        "shared_memory_bytes": None,
        "memory_available_bytes": None,
        "clock_resolution_seconds": None,
    }
    host = dataclasses.replace(HOST, **NO_GPU["host"] | unread)
    checks = {
        check.id: check.status
        for check in diagnose(Facts(host, Driver("580", (13, 0), (Gpu(0),)), None, None))
    }
    known = {"gpu.driver", "gpu.visible-devices", "host.cpu-quota"}
    assert {status for id_, status in checks.items() if id_ not in known} == {"SKIP"}, checks


def test_a_gpu_of_another_user_is_not_missed() -> None:
    driver = dataclasses.replace(DRIVER, gpus=(GPU, Gpu(1, problem="Insufficient Permissions")))
    assert named(on(driver=driver), "gpu.answers.1").status == "SKIP"
    assert named(on(driver=driver), "torch.gpu").status == "PASS"


def test_only_gpus_that_are_shown_must_fit() -> None:
    old = dataclasses.replace(
        GPU, index=1, uuid="GPU-old", compute_capability=(6, 1), name="GT 1030"
    )
    driver = dataclasses.replace(DRIVER, gpus=(GPU, old))
    shown = on(driver=driver, host={"environment": {"CUDA_VISIBLE_DEVICES": "0"}})
    assert named(shown, "torch.architecture").status == named(shown, "torch.gpu").status == "PASS"
    assert named(on(driver=driver), "torch.architecture").status == "FAIL"


def test_a_build_for_the_cuda_that_the_driver_serves() -> None:
    driver = dataclasses.replace(DRIVER, cuda=(12, 8))
    blind = dataclasses.replace(JAX, devices=("cpu",), examination=Examination())
    facts = Facts(HOST, driver, 0.0, (blind,))
    assert named(facts, "jax.gpu").fix == "pip install 'jax[cuda12]'"


def test_ids_are_unique_with_two_gpus() -> None:
    second = dataclasses.replace(GPU, index=1, peers=(), uuid="GPU-2")
    facts = dataclasses.replace(
        GOOD, driver=dataclasses.replace(DRIVER, gpus=(dataclasses.replace(GPU, peers=()), second))
    )
    ids = [check.id for check in diagnose(facts)]
    assert len(set(ids)) == len(ids)
    assert named(facts, "gpu.peer-access.1").status == "WARN"
    assert named(facts, "jax.gpu").status == "FAIL"  # sees one of two


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("0", "PASS"),
        (GPU.uuid, "PASS"),
        ("GPU-5e1f", "PASS"),
        ("", "WARN"),
        ("void", "WARN"),
        ("0,7", "WARN"),
        ("1", "FAIL"),
        ("0,0", "FAIL"),
        ("MIG-1234", "FAIL"),  # it is not divided
    ],
)
def test_visible_devices(value: str, status: str) -> None:
    assert (
        named(
            on(host={"environment": {"CUDA_VISIBLE_DEVICES": value}}), "gpu.visible-devices"
        ).status
        == status
    )


@pytest.mark.parametrize(
    ("architectures", "capability", "status"),
    [
        (("sm_80",), (8, 6), "PASS"),
        (("sm_86",), (8, 0), "FAIL"),
        (("sm_90a",), (9, 0), "PASS"),
        (("sm_100a",), (10, 3), "FAIL"),
        (("sm_100f",), (10, 3), "PASS"),
        (("sm_90", "compute_90"), (12, 0), "WARN"),
        (("compute_120",), (9, 0), "FAIL"),
        (("gfx942",), (9, 0), "SKIP"),
    ],
)
def test_architectures(
    architectures: tuple[str, ...], capability: tuple[int, int], status: str
) -> None:
    facts = on(gpu={"compute_capability": capability}, torch=examined(architectures=architectures))
    assert named(facts, "torch.architecture").status == status


def test_quick_asks_no_framework() -> None:
    def forbidden(at_once: bool) -> tuple[Framework, ...]:
        raise AssertionError("asked")

    facts = gather(
        quick=True,
        read_host=lambda: HOST,
        read_driver=lambda: DRIVER,
        busy=lambda: 0.0,
        examine=forbidden,
    )
    assert facts == Facts(HOST, DRIVER, 0.0, None)
    assert not any(check.id.startswith(JAX.name) for check in diagnose(facts))


@pytest.mark.parametrize(("exclusive", "at_once"), [(True, False), (False, True), (None, True)])
def test_frameworks_take_turns_on_a_gpu_for_one_process(
    exclusive: bool | None, at_once: bool
) -> None:
    asked: list[bool] = []

    def examine(at_once: bool) -> tuple[Framework, ...]:
        asked.append(at_once)
        return ()

    driver = dataclasses.replace(DRIVER, gpus=(dataclasses.replace(GPU, exclusive=exclusive),))
    gather(read_host=lambda: HOST, read_driver=lambda: driver, busy=lambda: 0.0, examine=examine)
    assert asked == [at_once]


@pytest.mark.parametrize(
    ("problem", "status", "fix"),
    [
        (None, "PASS", ""),
        ("the CPU has no energy counter (no RAPL: a virtual machine, or not Linux)", "SKIP", ""),
        ("no permission to read /sys/class/powercap/intel-rapl:0/energy_uj", "SKIP", "chmod a+r"),
    ],
)
def test_energy(problem: str | None, status: str, fix: str) -> None:
    check = named(on(host={"energy_problem": problem}), "host.energy")
    assert check.status == status
    assert fix in check.fix


def test_gpus_of_other_makers_are_named() -> None:
    check = named(on(host={"gpus_on_bus": {"NVIDIA": 1, "AMD": 2}}), "gpu.other-makers")
    assert (check.status, "2 AMD GPUs" in check.found) == ("SKIP", True)


def test_no_visible_process_in_a_container_does_not_mean_idle() -> None:
    assert named(on(), "gpu.processes.0").status == "PASS"
    assert named(on(host={"container": "docker"}), "gpu.processes.0").status == "SKIP"
    assert (
        named(on(host={"container": "docker"}, gpu={"processes": (7,)}), "gpu.processes.0").status
        == "WARN"
    )


def test_a_missing_library_of_the_driver_is_not_the_frameworks() -> None:
    printed = "Could not load dynamic library: libcuda.so.1: cannot open shared object file"
    check = named(on(torch=examined(printed=printed)), "torch.libraries")
    assert (check.status, check.fix) == ("SKIP", "See gpu.driver")


def test_what_a_crash_kept_from_being_asked_has_its_ids() -> None:
    crashed = dataclasses.replace(
        TORCH, devices=None, examination=None, products=(), problem="killed by SIGSEGV"
    )
    facts = on(torch=crashed)
    assert named(facts, "torch.import").status == "FAIL"
    for what in ("cuda-driver", "gpu", "architecture"):
        assert named(facts, f"torch.{what}").status == "SKIP"
