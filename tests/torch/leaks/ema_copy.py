# SPDX-License-Identifier: MIT
"""No leak: an average of the weights that is made anew each step and takes the place of the old."""
import copy

import leak_truth as truth
import torch

model, optimizer = truth.small_model(width=512)
average = copy.deepcopy(model).state_dict()
for _ in range(30):
    truth.train(model, optimizer)
    with torch.no_grad():
        average = {name: 0.9 * average[name] + 0.1 * value for name, value in model.state_dict().items()}
truth.tell("clean")
