# SPDX-License-Identifier: MIT
"""What the forward pass keeps for the backward is half as much again as the whole card has, from the first
step: a batch that is too large. --fix batch:0.5 takes that part of it; checkpointing keeps each eighth layer's
input and computes the rest again."""
from oom_kit import done, train_step, wanted_fix

fix, part = wanted_fix("batch:0.5")
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

N_LAYERS, WIDTH = 48, 512


class Chain(nn.Sequential):
    def forward(self, x):
        return checkpoint_sequential(list(self), 6, x, use_reentrant=False) if fix == "checkpointing" \
            else super().forward(x)


torch.manual_seed(0)
free, total = torch.cuda.mem_get_info()
rows = int(1.5 * total / N_LAYERS / WIDTH / 4)
if fix == "batch":
    rows = int(rows * (part or 0.5))
model = Chain(*[nn.Linear(WIDTH, WIDTH) for _ in range(N_LAYERS)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for step in range(2):
    train_step(model, optimizer, torch.randn(rows, WIDTH, device="cuda"))
done()
