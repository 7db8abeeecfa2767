# SPDX-License-Identifier: MIT
"""Leak: a cache of keys that grows with every token and is never dropped."""
import leak_truth as truth
import torch

model = truth.small_network()
keys = torch.zeros(0, 1024)
with torch.no_grad():
    for _ in range(40):
        out = model(torch.ones(4, 64))
        keys = torch.cat([keys, out.new_ones(32, 1024)])  # owner
truth.tell("leak", 32 * 1024 * 4, "growing")
