# SPDX-License-Identifier: MIT
"""No leak: a cache that is full after a third of the steps."""
import leak_truth as truth
import torch

model, optimizer = truth.small_model()
cache = {}
for step in range(40):
    truth.train(model, optimizer)
    key = step % 13
    if key not in cache:
        cache[key] = torch.zeros(128, 1024)
truth.tell("clean")
