"""Trainings without an optimiser of PyTorch."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def changed(weights):
    for weight in weights:
        if sys.argv[1] == "data":
            weight.data -= 0.1 * weight.grad.data
        else:
            with torch.no_grad():
                weight -= 0.1 * weight.grad
        weight.grad = None


def trained(network, epochs):
    loader = DataLoader(TensorDataset(torch.randn(40, 8), torch.randn(40, 1)), batch_size=8)
    held_out = torch.randn(20, 8)
    for _ in range(epochs):
        for batch, target in loader:
            loss = nn.functional.mse_loss(network(batch), target)
            if sys.argv[1] == "accumulated":
                nn.functional.mse_loss(network(batch[:4]), target[:4]).backward()
            loss.backward()
            print(loss.item())
            changed(list(network.parameters()))
        network.eval()
        with torch.no_grad():
            network(held_out)
        network.train()


def trained_without_a_module(steps):
    inputs = torch.randn(16, 8)
    weight = torch.zeros(8, 1, requires_grad=True)
    for _ in range(steps):
        loss = (inputs @ weight - 1).square().mean()
        loss.backward()
        print(loss.item())
        changed([weight])


torch.manual_seed(0)
if sys.argv[1] == "tensors":
    trained_without_a_module(20)
elif sys.argv[1] == "twice":
    trained(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)), 2)
    trained(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)), 2)
elif sys.argv[1] == "climbs":
    # The weights are moved before the gradients that the optimiser uses are computed.
    network = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    batch = torch.randn(16, 8)
    for _ in range(20):
        network(batch).square().mean().backward()
        with torch.no_grad():
            network.weight += 0.01 * network.weight.grad
        loss = network(batch).square().mean()
        loss.backward()
        optimizer.step()
elif sys.argv[1] == "heads":
    body = nn.Linear(8, 8)
    heads = [nn.Linear(8, 1), nn.Linear(8, 1)]
    for number in range(40):
        loss = heads[number % 2](torch.tanh(body(torch.randn(16, 8)))).square().mean()
        loss.backward()
        print(loss.item())
        changed([*body.parameters(), *heads[number % 2].parameters()])
elif sys.argv[1] == "new tensors":
    weight = torch.ones(100, requires_grad=True)
    for _ in range(3000):
        (weight - 1).square().sum().backward()
        weight = (weight - 0.1 * weight.grad).detach().requires_grad_()
elif sys.argv[1] == "gradients":
    network = nn.Linear(8, 1)
    for _ in range(20):
        image = torch.randn(1, 8, requires_grad=True)
        network(image).sum().backward()
        with torch.no_grad():
            image += image.grad
else:
    trained(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)), 4)
