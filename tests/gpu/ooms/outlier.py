# SPDX-License-Identifier: MIT
"""Sequences of 64 to 128 tokens take a tenth of the memory; the one of step 30 has 4096 and takes more than
all. With --fix sequences are cut to 256."""
import random

from oom_kit import MIB, allow, done, train_step, wanted_fix

fix, _ = wanted_fix("outlier")
import torch
from torch import nn

allow(1024 * MIB)
torch.manual_seed(0)
random.seed(0)
model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for step in range(40):
    length = 4096 if step == 30 else random.randint(64, 128)
    if fix:
        length = min(length, 256)
    train_step(model, optimizer, torch.randn(16, length, 512, device="cuda"))
done()
