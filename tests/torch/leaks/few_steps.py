# SPDX-License-Identifier: MIT
"""Not enough steps to tell."""
import leak_truth as truth
import torch

model, optimizer = truth.small_model()
kept = []
for _ in range(8):
    truth.train(model, optimizer)
    kept.append(torch.zeros(256, 1024))
truth.tell(None)
