"""Autocast to bf16 with a gradient scaler, and clipped gradients. 12 steps."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu")
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
for _ in range(12):
    x = torch.randn(32, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = (model(x).squeeze() - x.mean(1)).square().mean()
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    print(f"{float(loss).hex()} {schedule.get_last_lr()[0].hex()}")
