"""A script in the style of nanoGPT: batches from a function, accumulated gradients, a scaler,
evaluations."""

import inspect
import sys

import torch
from torch import nn

batch_size = 4
block_size = 16
accumulation = 3
eval_interval = 10
steps = int(sys.argv[1])
torch.manual_seed(1337)
data = torch.randint(0, 50, (5000,))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.head = nn.Linear(32, 50)

    def forward(self, idx, targets):
        logits = self.head(self.embedding(idx))
        return logits, nn.functional.cross_entropy(logits.view(-1, 50), targets.view(-1))


def get_batch():
    at = torch.randint(len(data) - block_size, (batch_size,))
    return torch.stack([data[i : i + block_size] for i in at]), torch.stack(
        [data[i + 1 : i + 1 + block_size] for i in at]
    )


@torch.no_grad()
def estimate_loss():
    model.eval()
    mean = torch.tensor([model(*get_batch())[1].item() for _ in range(5)]).mean()
    model.train()
    return mean


model = Model()
extra = {"fused": True} if "fused" in inspect.signature(torch.optim.AdamW).parameters else {}
assert extra, "the optimiser's signature must stay as it is"
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", enabled=False)
x, y = get_batch()
for step in range(steps):
    if step % eval_interval == 0:
        print("val", repr(float(estimate_loss())))
        torch.save({"model": model.state_dict()}, "/dev/null")
    for _ in range(accumulation):
        _, loss = model(x, y)
        loss = loss / accumulation
        x, y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    print("loss", repr(loss.item() * accumulation))
