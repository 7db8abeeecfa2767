# SPDX-License-Identifier: MIT
"""No leak: the same, dropped after each request; the last one is under way when the run ends."""
import leak_truth as truth
import torch

model = truth.small_network()
with torch.no_grad():
    for length in (9, 12, 10, 12, 11):
        keys = torch.zeros(0, 1024)
        for _ in range(length):
            out = model(torch.ones(4, 64))
            keys = torch.cat([keys, out.new_ones(64, 1024)])
truth.tell("clean", falls_back=True)
