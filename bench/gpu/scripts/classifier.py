"""Train a small Transformer to count how many rare tokens a sequence holds: a plain script.

    python classifier.py --device cuda:0
    python classifier.py --device cuda:0 --changes tf32+compile

`trainmark explain` gets the script without --changes. With --changes, it applies by hand what
`explain` advises.
"""

from __future__ import annotations

import argparse
import contextlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOCABULARY = 1000
RARE = 8
CLASSES = 5
CHANGES = ("none", "tf32", "bf16", "fp16", "fused", "foreach", "compile", "cuda-graphs")

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
parser.add_argument("--steps", type=int, default=3000)
parser.add_argument("--width", type=int, default=512)
parser.add_argument("--layers", type=int, default=4)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--length", type=int, default=128)
parser.add_argument("--examples", type=int, default=64_000)
parser.add_argument("--changes", default="none", help=f"some of {', '.join(CHANGES)}, joined by +")
options = parser.parse_args()
changes = options.changes.split("+")
if unknown := set(changes) - set(CHANGES):
    parser.error(
        f"--changes: expected some of {', '.join(CHANGES)}; found {', '.join(sorted(unknown))}"
    )
torch.manual_seed(0)
if "tf32" in changes:
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True


class Sequences(Dataset):
    """Random tokens; the label is the number of rare ones."""

    def __init__(self, examples):
        generator = torch.Generator().manual_seed(1)
        self.tokens = torch.randint(VOCABULARY, (examples, options.length), generator=generator)
        self.labels = (self.tokens < RARE).sum(dim=1).clamp(max=CLASSES - 1)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return self.tokens[index], self.labels[index]


class Classifier(nn.Module):
    """An encoder whose outputs are averaged."""

    def __init__(self, width):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Parameter(torch.zeros(1, options.length, width))
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, options.layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, tokens):
        return self.head(self.encoder(self.tokens(tokens) + self.positions).mean(dim=1))


def forward_pass():
    """The context of a forward pass: autocast to 16 bits if a change asks for it."""
    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        if name in changes:
            return torch.autocast(torch.device(options.device).type, dtype=dtype)
    return contextlib.nullcontext()


loader = DataLoader(Sequences(options.examples), batch_size=options.batch, shuffle=True)
network = Classifier(options.width).to(options.device)
model = network
if "cuda-graphs" in changes:
    model = torch.compile(network, mode="reduce-overhead")
elif "compile" in changes:
    model = torch.compile(network)
fused = True if "fused" in changes else None
foreach = True if "foreach" in changes and not fused else None
optimizer = torch.optim.AdamW(network.parameters(), lr=3e-4, fused=fused, foreach=foreach)
loss_fn = nn.CrossEntropyLoss()
step = 0
total = 0.0
while step < options.steps:
    for x, y in loader:
        x = x.to(options.device)
        y = y.to(options.device)
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
