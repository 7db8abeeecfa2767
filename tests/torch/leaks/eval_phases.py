# SPDX-License-Identifier: MIT
"""No leak: every tenth step an evaluation gathers predictions and drops them."""
import leak_truth as truth
import torch

model, optimizer = truth.small_model()
for step in range(40):
    truth.train(model, optimizer)
    if step % 10 == 9:
        with torch.no_grad():
            predictions = [model(torch.ones(512, 64)) for _ in range(12)]
        del predictions
truth.tell("clean")
