"""Runs code in a subinterpreter before it trains, which PyTorch 2.13 does not support."""

import _xxsubinterpreters as interpreters

other = interpreters.create()
interpreters.run_string(other, "import json, sys\nprint(json.dumps('inside'), flush=True)")
interpreters.destroy(other)

import torch  # noqa: E402

weight = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    weight.square().sum().backward()
    optimizer.step()
print(weight.item().hex())
