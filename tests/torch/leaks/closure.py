# SPDX-License-Identifier: MIT
"""Leak: callbacks that hold a tensor each."""
import leak_truth as truth
import torch

model, optimizer = truth.small_model()
callbacks = []


def make_callback(step):
    scale = torch.full((48, 1024), float(step))  # owner
    return lambda x: x * scale


for number in range(30):
    truth.train(model, optimizer)
    callbacks.append(make_callback(number))
truth.tell("leak", truth.kept_bytes([c.__closure__[0].cell_contents for c in callbacks]) / 30, "container")
