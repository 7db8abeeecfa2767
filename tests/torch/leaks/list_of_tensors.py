# SPDX-License-Identifier: MIT
"""Leak: a list of tensors that nobody empties."""
import leak_truth as truth
import torch

model, optimizer = truth.small_model()
kept = []
for _ in range(30):
    truth.train(model, optimizer)
    kept.append(torch.zeros(64, 1024))  # owner
truth.tell("leak", truth.kept_bytes(kept) / len(kept), "container")
