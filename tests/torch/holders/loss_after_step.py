# SPDX-License-Identifier: MIT
"""A second loss, made after step(), is summed with its graph."""
import torch
from torch import nn
net = nn.Sequential(nn.Linear(96, 128), nn.GELU(), nn.Linear(128, 24))
opt = torch.optim.AdamW(net.parameters())


def smoothness(o, t):
    d = (o - t).tanh()
    return (d * o.sigmoid()).sum()  # owner


total = 0.0
for step in range(80):
    x, t = torch.randn(200, 96), torch.randn(200, 24)
    o = net(x)
    loss = nn.functional.mse_loss(o, t)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total = total + smoothness(o, t)
print(float(total))
