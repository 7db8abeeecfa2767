# SPDX-License-Identifier: MIT
"""No leak: a cache of forty that is filled by chance, and is nearly full."""
import random

import leak_truth as truth
import torch

random.seed(0)
model, optimizer = truth.small_model()
cache = {}
for _ in range(150):
    truth.train(model, optimizer)
    key = random.randint(0, 39)
    if key not in cache:
        cache[key] = torch.zeros(100, 1000)
truth.tell("clean", not_judged="slowing")
