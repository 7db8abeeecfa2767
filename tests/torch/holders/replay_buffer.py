# SPDX-License-Identifier: MIT
"""Batches are kept, two tensors that are made before the model is called."""
import random
import torch
from torch import nn
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
opt = torch.optim.Adam(net.parameters())
buffer = []
for step in range(90):
    obs = torch.randn(128, 64)  # owner
    target = torch.randn(128, 64)  # owner
    buffer.append((obs, target))
    o, t = random.choice(buffer)
    loss = (net(o) - t).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
