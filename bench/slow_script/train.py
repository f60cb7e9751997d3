"""A training script in which one part at a time is slow or harms learning, or none is.

    python bench/slow_script/train.py --slow loader-sleep

bench/slow_script/measure.py says what each name plants, and what `trainmark explain` finds of it.
The line that is to change, if there is one, ends with a comment that names the plant. Several
plants are joined by "+".
"""

import argparse
import time
import zlib
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

PLANTS = {
    "none": "nothing",
    "loader-sleep": "the dataset waits 30 us for each example, as a slow disk does",
    "decode": "each example is decompressed and parsed when it is read, in the training process",
    "item": "every output is read with .item(), after every step",
    "python-optimizer": "an optimiser of its own that updates row by row",
    "many-parameters": "AdamW updates 256 small tensors one after the other",
    "one-thread": "one thread, though there are more cores",
    "float64": "the data is float64, so the network was made float64, too",
    "evaluation": "it evaluates after every step",
    "checkpoint": "it saves a checkpoint after every step",
    "transfer": "the whole training set is converted to a tensor in every step",
    "grad-evaluation": "it evaluates after every fifth step, with gradients",
    "tiny-batch": "batches of 4 examples",
    "small-loss": "the loss is divided by 10,000, so that 16 bits can't hold its gradients",
}


def examples(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ten noisy patterns of 784 values, and their labels."""
    random = torch.Generator().manual_seed(seed)
    patterns = torch.randn(10, 784, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(10, (count,), generator=random)
    return 0.15 * patterns[labels] + torch.randn(count, 784, generator=random), labels


class SlowDisk(Dataset):
    """Waits for each example."""

    def __init__(self, of: Dataset) -> None:
        self.of = of

    def __len__(self) -> int:
        return len(self.of)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(30e-6)  # slow: loader-sleep
        return self.of[index]


class Packed(Dataset):
    """Decompresses each example."""

    def __init__(self, x: torch.Tensor, labels: torch.Tensor) -> None:
        self.packed = [zlib.compress(each.numpy().tobytes(), 1) for each in x]
        self.labels = labels

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        unpacked = zlib.decompress(self.packed[index])  # slow: decode
        return torch.frombuffer(bytearray(unpacked), dtype=torch.float32), self.labels[index]


class RowByRow(torch.optim.Optimizer):
    """Momentum, written as a loop over rows."""

    def __init__(self, parameters: object, lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: object = None) -> None:  # noqa: ARG002  (as PyTorch has it)
        for group in self.param_groups:
            for parameter in group["params"]:
                slot = self.state[parameter].setdefault("slot", torch.zeros_like(parameter))
                for row, change, kept in zip(parameter, parameter.grad, slot, strict=True):
                    kept.mul_(0.9).add_(change)
                    row.sub_(group["lr"] * kept)


class Scales(nn.Module):
    """Scales its input by many small parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scales = nn.ParameterList(torch.ones(2) for _ in range(width // 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.cat(list(self.scales))


def network(shape: set[str]) -> nn.Module:
    """Build three dense layers, with many small parameters between them if requested."""
    width = 2048 if "one-thread" in shape else 512
    scales = [Scales(width)] if "many-parameters" in shape else []
    return nn.Sequential(
        nn.Linear(784, width),
        *scales,
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 10),
    )


def plants(text: str) -> set[str]:
    """Return the plants that are asked for."""
    chosen = set(text.split("+"))
    if not chosen <= PLANTS.keys():
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(PLANTS)}")
    return chosen - {"none"}


def main() -> None:  # noqa: C901  (one branch per plant)
    """Train."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slow", type=plants, default=plants("none"))
    parser.add_argument("--like", type=plants, help="mended, but of the size of these")
    parser.add_argument(
        "--change",
        default="",
        help="by hand: threads=1, workers=2, batch=8, fused, foreach or bf16",
    )
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    slow = options.slow
    shape = options.like or slow
    change, _, number = options.change.partition("=")
    torch.manual_seed(options.seed)
    if "one-thread" in slow or change == "threads":
        torch.set_num_threads(int(number or 1))
    x, labels = examples(20_000, options.seed)
    data: Dataset = TensorDataset(x, labels)
    if "float64" in slow:
        data = TensorDataset(x.double(), labels)
    if "loader-sleep" in slow:
        data = SlowDisk(data)
    elif "decode" in slow:
        data = Packed(x, labels)
    tests = 4_000 if "grad-evaluation" in shape else 1_000
    test_x, test_labels = examples(tests, options.seed + 1)
    size = (4 if "tiny-batch" in slow else 128) * (int(number) if change == "batch" else 1)
    loading = (
        {"num_workers": int(number), "persistent_workers": True} if change == "workers" else {}
    )
    loader = DataLoader(data, batch_size=size, shuffle=True, drop_last=True, **loading)
    model = network(shape)
    if "float64" in slow:
        model = model.double()  # slow: float64
        test_x = test_x.double()
    faster = {change: True} if change in ("fused", "foreach") else {}
    if "python-optimizer" in slow:
        optimizer: torch.optim.Optimizer = RowByRow(model.parameters(), 0.01)
    elif "many-parameters" in shape:
        faster = faster or {"foreach": "many-parameters" not in slow}
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3, **faster)
    else:
        rate = 100 if "small-loss" in slow else 0.01
        optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9, **faster)
    raw = x.numpy()

    def evaluate() -> float:
        model.eval()
        total = sum(
            functional.cross_entropy(model(inputs), targets)
            for inputs, targets in zip(test_x.split(500), test_labels.split(500), strict=True)
        )
        model.train()
        return float(total) / (len(test_x) / 500)

    step = 0
    for _ in range(options.epochs):
        model.train()
        for inputs, targets in loader:
            if "transfer" in slow:
                everything = torch.tensor(raw)  # slow: transfer
                chosen = torch.arange(step * size, (step + 1) * size) % len(raw)
                inputs = everything[chosen]
                targets = labels[chosen]
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=change == "bf16"):
                logits = model(inputs).float()
            loss = functional.cross_entropy(logits, targets)
            if "small-loss" in slow:
                loss = loss / 10_000
            loss.backward()
            optimizer.step()
            step += 1
            if "item" in slow:
                outputs = [[value.item() for value in row] for row in logits]  # slow: item
                max(max(row) for row in outputs)
            if "evaluation" in slow:
                with torch.no_grad():
                    evaluate()
            elif "grad-evaluation" in shape and step % 5 == 0:
                with torch.set_grad_enabled("grad-evaluation" in slow):
                    evaluate()
            if "checkpoint" in slow:
                torch.save(model.state_dict(), Path("checkpoint.pt"))  # slow: checkpoint
        with torch.no_grad():
            print(f"step {step}: loss {loss.item():.4f}, test loss {evaluate():.4f}", flush=True)


if __name__ == "__main__":
    main()
