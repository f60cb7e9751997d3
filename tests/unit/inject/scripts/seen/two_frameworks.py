"""PyTorch and JAX train in one process, in turn or one after the other."""

import sys

import jax
import jax.numpy as jnp
import torch

is_in_turn = sys.argv[1] == "in turn"
others = {"in turn": 0, "one after the other": 50, "only tried": 1}[sys.argv[1]]
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
weights = jnp.ones((8, 1))


@jax.jit
def step(weights, x):
    loss, gradients = jax.value_and_grad(lambda weights: ((x @ weights) ** 2).mean())(weights)
    return weights - 0.01 * gradients, loss


def train_in_jax():
    global weights
    weights, _ = step(weights, jnp.asarray(torch.randn(16, 8).numpy()))


for _ in range(30):
    loss = model(torch.randn(16, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if is_in_turn:
        train_in_jax()
for _ in range(others):
    train_in_jax()
