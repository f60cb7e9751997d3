"""Gradients are accumulated over four batches. 5 steps."""

import torch
from torch import nn

torch.manual_seed(0)
embedding = nn.Embedding(50, 16)
model = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
head = nn.Linear(16, 50)
weights = [*embedding.parameters(), *model.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(weights, lr=1e-3)
for step in range(20):
    tokens = torch.randint(0, 50, (4, 9))
    out = head(model(embedding(tokens[:, :-1])))
    loss = nn.functional.cross_entropy(out.flatten(0, 1), tokens[:, 1:].flatten()) / 4
    loss.backward()
    if step % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
    print(loss.item().hex())
