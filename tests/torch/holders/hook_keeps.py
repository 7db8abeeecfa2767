# SPDX-License-Identifier: MIT
"""A forward hook keeps copies."""
import torch
from torch import nn
net = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 8))
opt = torch.optim.SGD(net.parameters(), 0.01)
acts = []


def save(m, i, o):
    acts.append(o.detach() * 1.0)  # owner


net[0].register_forward_hook(save)
for step in range(60):
    loss = net(torch.randn(64, 32)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
