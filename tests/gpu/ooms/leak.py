# SPDX-License-Identifier: MIT
"""Each step's score is kept with its graph, activations and all, for ever: 14 MiB a step of 1 GiB. With
--fix the number alone is kept."""
from oom_kit import MIB, allow, done, train_step, wanted_fix

fix, _ = wanted_fix("leak")
import torch
from torch import nn

allow(1024 * MIB)
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(6)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
scores = []
for step in range(150):
    train_step(model, optimizer, torch.randn(1024, 512, device="cuda"))
    score = model(torch.randn(1024, 512, device="cuda")).square().mean()
    scores.append(score.item() if fix else score)
done()
