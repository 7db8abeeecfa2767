# SPDX-License-Identifier: MIT
"""No leak: outputs are gathered over all steps, put together and dropped; the program goes on."""
import time

import leak_truth as truth
import torch

model, optimizer = truth.small_model()
outputs = []
for _ in range(40):
    truth.train(model, optimizer)
    outputs.append(torch.ones(64, 1024))
mean = torch.cat(outputs).mean()
outputs.clear()
time.sleep(0.3)
truth.tell("clean", not_judged="joined")
