# SPDX-License-Identifier: MIT
"""Leak: predictions of an evaluation are gathered without no_grad(), so each keeps its graph."""
import leak_truth as truth
import torch

model = truth.small_network(width=512)
predictions = []
with truth.saved_by_autograd() as saved:
    saved.start()
    for _ in range(30):
        predictions.append(model(torch.ones(64, 512)))  # owner
    saved.stop()
truth.tell("leak", saved.bytes(model, predictions) / 30, "graph")
