# SPDX-License-Identifier: MIT
"""A function under @inference_mode keeps inputs and outputs."""
import torch
from torch import nn
net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 16))
opt = torch.optim.SGD(net.parameters(), 0.01)
kept = []


@torch.inference_mode()
def evaluate():
    x = torch.randn(128, 64)  # owner
    y = net(x)  # owner
    kept.append((x, y, y.exp()))  # owner


for step in range(60):
    loss = net(torch.randn(64, 64)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    evaluate()
