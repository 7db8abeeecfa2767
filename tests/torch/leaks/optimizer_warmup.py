# SPDX-License-Identifier: MIT
"""No leak: Adam makes its state as layers are unfrozen, one in each of the first steps."""
import leak_truth as truth
import torch

model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(6)])
optimizer = torch.optim.Adam(model.parameters())
for layer in model[:-1]:
    layer.requires_grad_(False)
for step in range(30):
    truth.train(model, optimizer, width=256)
    if step < 5:
        model[4 - step].requires_grad_(True)
truth.tell("clean")
