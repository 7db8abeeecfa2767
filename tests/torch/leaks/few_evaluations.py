# SPDX-License-Identifier: MIT
"""Each of four evaluations keeps its graphs: too few to tell."""
import leak_truth as truth
import torch

model, optimizer = truth.small_model(width=512)
kept = []
for _ in range(4):
    for _ in range(15):
        truth.train(model, optimizer)
    for _ in range(10):
        kept.append(model(torch.ones(64, 64)))
truth.tell("clean", not_judged="few")
