"""``trainmark container``: Dockerfiles for CPU and GPU, and the images themselves."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli.main import OK
from trainmark.cli.output import console, json_option, print_json
from trainmark.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from trainmark.container.build import Built
    from trainmark.container.flavours import Device, Flavour

FOLDER = Path("trainmark-container")

EPILOG = """\b
Examples:
  trainmark container write                              Dockerfiles for CPU and GPU, and compose.yaml
  trainmark container build                              the image for the CPU
  trainmark container build --device cuda                for NVIDIA GPUs; none is needed to build it
  trainmark container build --device cuda --ngc          the same on NVIDIA's own PyTorch image

\b
Then: docker run --rm --hostname "$(hostname)" -v "$PWD:/work" trainmark:VERSION-cpu [trainmark's arguments]
"""

base_option = click.option(
    "--base", metavar="IMAGE", help="Stand on this image, NAME@sha256:DIGEST; goes with --device."
)
ngc_option = click.option("--ngc", is_flag=True, help="For CUDA: NVIDIA's PyTorch image with the PyTorch that it has.")
folder_option = click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=FOLDER,
    show_default=True,
    metavar="DIR",
    help="Folder that the images are built from.",
)
force_option = click.option("--force", is_flag=True, help="Write over files that were changed there.")


@click.group("container", epilog=EPILOG)
def command() -> None:
    """Write Dockerfiles for CPU and GPU, and build images with docker, podman or buildah.

    An image holds the trainmark that runs here, PyTorch, and a list of all Python packages in it.
    """


@command.command("write")
@click.option("--device", type=click.Choice(("cpu", "cuda")), help="For this one alone.  [default: both]")
@ngc_option
@base_option
@folder_option
@force_option
@json_option
def write_command(device: Device | None, ngc: bool, base: str | None, folder: Path, force: bool, as_json: bool) -> int:
    """Write everything that images are built from: no program but trainmark is needed."""
    from trainmark.container import folder as folders
    from trainmark.container.origin import origin
    from trainmark.container.render import compose

    if base is not None and device is None:
        raise UsageError("--base is for one image", expected="--device cpu or --device cuda", found="neither")
    devices: tuple[Device, ...] = ("cpu", "cuda") if device is None else (device,)
    code = origin()
    _check_ngc(device, ngc)
    chosen = [_chosen(each, ngc, base) for each in devices]
    files = {**folders.contents(chosen, code), "compose.yaml": compose(chosen, code).encode()}
    written = folders.write(folder, files, keep_changed=False, force=force)
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "version": code.version,
                "revision": code.revision,
                "source": code.source,
                "bases": {flavour.name: stands_on for flavour, stands_on in chosen},
                "written": written.written,
                "unchanged": written.unchanged,
            }
        )
        return OK
    screen = console(to_stderr=True)
    _say(screen, f"wrote {', '.join(written.written) or 'nothing new'} in {folder}")
    _say_unpinned(screen, [stands_on for _, stands_on in chosen])
    return OK


@command.command("build")
@click.option("--device", type=click.Choice(("cpu", "cuda")), default="cpu", show_default=True, help="What for.")
@ngc_option
@base_option
@click.option("--tag", metavar="NAME:TAG", help="What to call it.  [default: trainmark:VERSION-DEVICE]")
@click.option(
    "--with",
    "wanted",
    type=click.Choice(("docker", "podman", "buildah")),
    help="Who builds.  [default: the first here]",
)
@click.option("--target", metavar="STAGE", help="Stop after this stage of the Dockerfile.")
@click.option(
    "--torch-index",
    metavar="URL",
    help="Index with PyTorch's builds for the CPU; pip's own if not given, which often has builds with CUDA alone.",
)
@click.option(
    "--pip-config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True),
    metavar="FILE",
    help="pip.conf for the build, such as a mirror's; it stays in no layer.",
)
@click.option("--dry-run", is_flag=True, help="Write the folder and print the command.")
@folder_option
@force_option
@json_option
def build_command(**options: Any) -> int:
    """Build an image: write the folder, run the builder, say what it made.

    Files that somebody changed in the folder are built as they are. Without --base, the one that is written there is
    taken; without a digest in it, the builder is asked for the present one.
    """
    from trainmark.container import folder as folders
    from trainmark.container.build import build, pinned
    from trainmark.container.engine import Order, find_engine
    from trainmark.container.origin import origin
    from trainmark.container.render import check_base, check_tag, image_name
    from trainmark.container.wheel import wheel_name

    screen = console(to_stderr=True)
    folder: Path = options["folder"]
    _check_ngc(options["device"], options["ngc"])
    flavour, base = _chosen(options["device"], options["ngc"], options["base"])
    if options["base"] is None and not options["force"]:
        base = check_base(folders.base_there(folder, flavour) or base)
    code = origin()
    tag = check_tag(options["tag"] or _part(image_name(flavour, code), options["target"]))
    arguments = {"BASE": base, "WHEEL": wheel_name(code)}
    if options["torch_index"] is not None:
        if not flavour.framework:
            raise UsageError("--torch-index is for the CPU", found=f"--device {flavour.device}")
        arguments["TORCH_INDEX"] = options["torch_index"]
    engine = find_engine(options["wanted"])
    files = folders.contents([(flavour, base)], code)
    written = folders.write(folder, files, keep_changed=True, force=options["force"])
    if written.kept:
        _say(screen, f"{', '.join(written.kept)} in {folder} was changed there and is used as it is (--force replaces)")
    order = Order(folder, flavour.dockerfile, tag, arguments, code.labels(), options["target"], options["pip_config"])
    if options["dry_run"]:
        words = engine.build_words(order)
        print_json({"command": words}) if options["as_json"] else click.echo(shlex.join(words))
        return OK
    with _watched(screen, f"{engine.name} builds {tag}") as told:
        told(f"base {base}")
        order = pinned(order, engine)
        _say_unpinned(screen, [order.arguments["BASE"]])
        built = build(order, engine, told)
    if options["as_json"]:
        print_json({**vars(built), "sbom": built.sbom and str(built.sbom), "log": str(built.log)})
    else:
        _say_built(built, flavour)
    return OK


def _check_ngc(device: Device | None, ngc: bool) -> None:
    if ngc and device == "cpu":
        raise UsageError("--ngc is for GPUs", expected="--device cuda", found="--device cpu")


def _chosen(device: Device, ngc: bool, base: str | None) -> tuple[Flavour, str]:
    from trainmark.container.flavours import flavour
    from trainmark.container.render import check_base

    chosen = flavour(device, ngc=ngc)
    return chosen, check_base(base) if base is not None else chosen.base


def _part(image: str, target: str | None) -> str:
    return image if target is None else f"{image}-{target}"


def _say(screen: Console, text: str) -> None:
    screen.print(f"trainmark: {text}", soft_wrap=True, markup=False, highlight=False)


def _say_unpinned(screen: Console, bases: list[str]) -> None:
    from trainmark.container.render import is_pinned

    for base in bases:
        if not is_pinned(base):
            _say(
                screen,
                f"note: {base} is no digest, so it may be another image tomorrow; `trainmark container build` "
                f"pins it where the builder knows its digest, else --base NAME@sha256:DIGEST",
            )


def _say_built(built: Built, flavour: Flavour) -> None:
    from trainmark import units
    from trainmark.container.engine import run_line

    click.echo(
        f"{built.image}: {units.bytes_(built.bytes)}, built by {built.engine} in {units.seconds(built.seconds)} "
        f"on {built.base}"
    )
    if built.sbom is None:
        return
    click.echo(f"{built.packages} Python packages in it: {built.sbom}")
    click.echo(f"Run it: {run_line(built.engine, built.image, flavour)}")


@contextmanager
def _watched(screen: Console, title: str) -> Iterator[Callable[[str], None]]:
    """Each step as it begins: one line that changes on a terminal, else a line each."""
    if not screen.is_terminal:
        yield lambda step: _say(screen, step[:160])
        return
    from rich.markup import escape

    with screen.status(escape(title)) as status:
        yield lambda step: status.update(escape(f"{title}: {step[: max(20, screen.width - len(title) - 6)]}"))
