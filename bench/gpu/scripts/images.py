"""Train a small convolutional network on images that the training process itself makes, slowly.

    python images.py --device cuda:0
    python images.py --device cuda:0 --changes workers=4+channels-last

`trainmark explain` gets the script without --changes. With --changes, it applies by hand what
`explain` advises.
"""

from __future__ import annotations

import argparse
import contextlib

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

CLASSES = 10
CHANGES = (
    "none",
    "workers",
    "pin",
    "tf32",
    "bf16",
    "fp16",
    "fused",
    "foreach",
    "channels-last",
    "compile",
    "cuda-graphs",
)

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
parser.add_argument("--steps", type=int, default=3000)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--side", type=int, default=64)
parser.add_argument("--examples", type=int, default=20_000)
parser.add_argument(
    "--changes", default="none", help=f"some of {', '.join(CHANGES)}, such as workers=4+bf16"
)
options = parser.parse_args()
changes = {
    name: value for name, _, value in (each.partition("=") for each in options.changes.split("+"))
}
if unknown := set(changes) - set(CHANGES):
    parser.error(
        f"--changes: expected some of {', '.join(CHANGES)}; found {', '.join(sorted(unknown))}"
    )
torch.manual_seed(0)
if "tf32" in changes:
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True


class Images(Dataset):
    """Random crops of larger pictures, resized and flipped one by one, as decoding loaders do."""

    def __init__(self, examples):
        generator = torch.Generator().manual_seed(1)
        side = options.side
        self.labels = torch.randint(CLASSES, (examples,), generator=generator)
        self.pictures = torch.randint(
            256, (CLASSES, 3, 2 * side, 2 * side), generator=generator, dtype=torch.uint8
        )

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        label = self.labels[index]
        side = options.side
        top, left = torch.randint(side // 2, (2,)).tolist()
        cut = self.pictures[
            label, :, top : top + 3 * side // 2, left : left + 3 * side // 2
        ].float()
        image = functional.interpolate(
            cut[None], size=(side, side), mode="bilinear", antialias=True
        )[0]
        if torch.rand(()) < 0.5:
            image = image.flip(2)
        return (image - 127.5) / 64.0, label


def block(inputs, outputs):
    """A convolution, its norm and activation, and pooling."""
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


def forward_pass():
    """The context of a forward pass: autocast to 16 bits if a change asks for it."""
    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        if name in changes:
            return torch.autocast(torch.device(options.device).type, dtype=dtype)
    return contextlib.nullcontext()


workers = int(changes.get("workers") or 0)
loader = DataLoader(
    Images(options.examples),
    batch_size=options.batch,
    shuffle=True,
    drop_last=True,
    num_workers=workers,
    persistent_workers=workers > 0,
    pin_memory="pin" in changes,
)
width = options.width
network = nn.Sequential(
    block(3, width),
    block(width, 2 * width),
    block(2 * width, 4 * width),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(4 * width, CLASSES),
).to(options.device)
layout = torch.channels_last if "channels-last" in changes else torch.contiguous_format
network.to(memory_format=layout)
model = network
if "cuda-graphs" in changes:
    model = torch.compile(network, mode="reduce-overhead")
elif "compile" in changes:
    model = torch.compile(network)
fused = True if "fused" in changes else None
foreach = True if "foreach" in changes and not fused else None
optimizer = torch.optim.SGD(
    network.parameters(), lr=0.05, momentum=0.9, fused=fused, foreach=foreach
)
loss_fn = nn.CrossEntropyLoss()
step = 0
total = 0.0
while step < options.steps:
    for x, y in loader:
        x = x.to(options.device, non_blocking="pin" in changes, memory_format=layout)
        y = y.to(options.device, non_blocking="pin" in changes)
        optimizer.zero_grad()
        with forward_pass():
            outputs = model(x)
        loss = loss_fn(outputs.float(), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        step += 1
        if step % 100 == 0:
            print(f"step {step} loss {total / 100:.4f}", flush=True)
            total = 0.0
        if step >= options.steps:
            break
