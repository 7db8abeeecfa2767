# SPDX-License-Identifier: MIT
"""Losses of a validation are kept with their graphs, in a list that is local to a function."""
import torch
from torch import nn


def main():
    net = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 32))
    opt = torch.optim.SGD(net.parameters(), 0.01)
    history = []
    for step in range(60):
        x = torch.randn(128, 64)
        out = net(x)
        loss = out.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        val = net(torch.randn(128, 64)).abs().mean()  # owner
        history.append(val)
    return sum(history).item()


main()
