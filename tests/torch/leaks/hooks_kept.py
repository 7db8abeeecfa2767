# SPDX-License-Identifier: MIT
"""Leak: a forward hook of two layers that keeps a copy of what they gave."""
import leak_truth as truth

model, optimizer = truth.small_model(width=256)
seen = []


def remember(module, args, output):
    seen.append(output.detach().clone())  # owner


model[0].register_forward_hook(remember)
model[1].register_forward_hook(remember)
for _ in range(30):
    truth.train(model, optimizer, batch=128)
truth.tell("leak", truth.kept_bytes(seen) / 30, "hook")
