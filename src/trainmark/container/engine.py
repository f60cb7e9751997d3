"""Who can build images here: docker, podman or buildah, and how each is spoken to."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainmark.container.flavours import Flavour
from trainmark.container.process import ask
from trainmark.errors import BuildFailed, NoEngine

NAMES = ("docker", "podman", "buildah")
_ANSWER_SECONDS = 30.0
_ALL_GPUS = {"docker": ("--gpus", "all"), "podman": ("--device", "nvidia.com/gpu=all")}

# These fail unless images can be built: docker's client is often there without its daemon, podman's without its
# machine.
_KNOCKS = {"docker": ("version",), "podman": ("info",), "buildah": ("info",)}


@dataclass(frozen=True)
class Order:
    """What is to be built.

    Attributes:
        folder: with everything that goes into it.
        dockerfile: its file in there.
        tag: what the image will be called.
        arguments: of the build, by name.
        labels: of the image, by name.
        target: the stage to stop after; the whole image if None.
        pip_config: pip's settings for the build alone.
    """

    folder: Path
    dockerfile: str
    tag: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None
    pip_config: Path | None = None


@dataclass(frozen=True)
class Engine:
    """A program that builds images."""

    name: str
    path: str

    def build_words(self, order: Order) -> list[str]:
        """The command that builds ``order``."""
        folder = str(order.folder)
        if folder.startswith("-"):
            folder = f"./{folder}"  # or it would be an option
        words = [self.path, "build", "--file", f"{folder}/{order.dockerfile}", "--tag", order.tag]
        if self.name == "docker":
            words += ["--progress", "plain"]
        for name, value in order.arguments.items():
            words += ["--build-arg", f"{name}={value}"]
        for name, value in order.labels.items():
            words += ["--label", f"{name}={value}"]
        if order.target is not None:
            words += ["--target", order.target]
        if order.pip_config is not None:
            words += ["--secret", f"id=pip.conf,src={order.pip_config}"]
        return [*words, folder]

    def digest(self, base: str) -> str | None:
        """``base`` by its present digest, or by that of what is here; None where this engine can't tell it."""
        if self.name == "buildah":
            ask([self.path, "pull", "--quiet", "--policy", "ifnewer", base])
            found = self._one([self.path, "inspect", "--type", "image", "--format", "{{.FromImageDigest}}", base])
            return f"{_untagged(base)}@{found}" if found else None
        ask([self.path, "pull", "--quiet", base])
        found = self._one([self.path, "image", "inspect", "--format", "{{json .RepoDigests}}", base])
        digests = json.loads(found) if found else None
        return str(digests[0]) if digests else None

    def size(self, tag: str) -> tuple[str, int]:
        """The id of an image, and the bytes of its files, uncompressed."""
        if self.name == "buildah":
            inspect = [self.path, "inspect", "--type", "image", "--format", "{{.FromImageID}} {{.Manifest}}", tag]
            image, manifest = self._must(inspect).split(" ", 1)
            return image, sum(int(layer["size"]) for layer in json.loads(manifest)["layers"])
        image, size = self._must([self.path, "image", "inspect", "--format", "{{.Id}} {{.Size}}", tag]).split()
        return image, int(size)

    def read(self, tag: str, path: str) -> str:
        """A text file out of an image."""
        if self.name != "buildah":
            return self._must([self.path, "run", "--rm", "--network=none", "--entrypoint=cat", tag, path])
        container = self._must([self.path, "from", "--pull-never", tag]).strip()
        try:
            return self._must([self.path, "run", container, "--", "cat", path])
        finally:
            ask([self.path, "rm", container])

    def _one(self, words: Sequence[str]) -> str | None:
        code, out, _ = ask(words)
        return out.strip() if code == 0 and out.strip() not in ("", "null", "[]") else None

    def _must(self, words: Sequence[str]) -> str:
        code, out, err = ask(words)
        if code != 0:
            raise BuildFailed(f"{' '.join(words)} failed", found=(err or out).strip()[-2000:])
        return out


def run_line(engine: str, image: str, flavour: Flavour) -> str:
    """The line for a shell that runs an image where ``engine`` left it, in the folder that one stands in."""
    runner = "docker" if engine == "docker" else "podman"  # which shares buildah's images
    gpus = _ALL_GPUS[runner] if flavour.device == "cuda" else ()
    words = [runner, "run", "--rm", '--hostname "$(hostname)"', *gpus, *flavour.run_options, '-v "$PWD:/work"', image]
    return " ".join(words)


def find_engine(wanted: str | None = None, which: Callable[[str], str | None] = shutil.which) -> Engine:
    """The first of docker, podman and buildah that is here and answers, or the one that is ``wanted``.

    Raises:
        NoEngine: none does.
    """
    found = []
    for name in NAMES if wanted is None else (wanted,):
        path = which(name)
        if path is None:
            found.append(f"no {name}")
            continue
        try:
            code, out, err = ask([path, *_KNOCKS[name]], _ANSWER_SECONDS)
        except BuildFailed as failed:  # what is called so is none, and another may be here
            code, out, err = 126, "", failed.found or ""
        if code == 0:
            return Engine(name, path)
        said = (err or out).strip().splitlines() or [f"exit code {code}"]
        found.append(f"{path}, which can't build: {said[-1]}")
    raise NoEngine(
        "nothing here builds images",
        expected=" or ".join(NAMES if wanted is None else (wanted,)),
        found="; ".join(found),
        fix="Install one, such as with `apt-get install buildah`; `trainmark container write` needs none.",
    )


def _untagged(base: str) -> str:
    name, colon, tag = base.rpartition(":")
    return name if colon and "/" not in tag else base
