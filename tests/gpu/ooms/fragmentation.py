# SPDX-License-Identifier: MIT
"""Small results stay behind in each large segment. When the large work buffers have gone, three quarters of
the memory is free, in pieces of 38 MiB: 64 MiB find no place. With expandable segments they do."""
from oom_kit import MIB, allow, done, train_step, wanted_fix

wanted_fix("expandable_segments")
import torch
from torch import nn


class Scale(nn.Module):
    """No matrix product: cuBLAS would want a workspace of its own."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1024))

    def forward(self, x):
        return x * self.weight


def buffer(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


allow(1024 * MIB)
model = Scale().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
results, work = [], []
for step in range(20):
    raw = buffer(40)
    del raw
    results.append(buffer(2))  # takes the front of the segment that `raw` was in
    work.append(buffer(38))
    train_step(model, optimizer, torch.ones(32, 1024, device="cuda"))
work.clear()
for step in range(4):
    work.append(buffer(64))
    train_step(model, optimizer, torch.ones(32, 1024, device="cuda"))
done()
