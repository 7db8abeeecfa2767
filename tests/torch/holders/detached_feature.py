# SPDX-License-Identifier: MIT
"""A module keeps a detached copy of a feature, and a number beside it."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 256), nn.Linear(256, 8)
        self.log = []

    def forward(self, x):
        h = torch.relu(self.a(x))
        self.log.append((h.detach().clone(), torch.tensor(float(len(self.log)))))  # owner
        return self.b(h)


net = Net()
opt = torch.optim.SGD(net.parameters(), 0.01)
for step in range(60):
    loss = net(torch.randn(64, 64)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
