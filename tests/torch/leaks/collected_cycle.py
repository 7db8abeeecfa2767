# SPDX-License-Identifier: MIT
"""No leak: cycles that Python's collector finds, now and then."""
import gc

import leak_truth as truth
import torch


class Batch:
    def __init__(self):
        self.itself = self
        self.data = torch.zeros(128, 1024)


gc.disable()
model, optimizer = truth.small_model()
for step in range(45):
    batch = Batch()
    truth.train(model, optimizer)
    if step % 10 == 9:
        gc.collect()
truth.tell("clean", falls_back=True)
