# SPDX-License-Identifier: MIT
"""Needs some 10 GiB of the card, of which another process (eater.py) has left 6. With --fix, which is to end
that process, this does the same as without."""
import time

from oom_kit import done, train_step, wanted_fix

wanted_fix("other_process")
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
torch.cuda.synchronize()
time.sleep(2.5)  # the card is looked at once a second
for step in range(5):
    train_step(model, optimizer, torch.randn(256 * 1024, 1024, device="cuda"))
done()
