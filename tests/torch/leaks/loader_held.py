# SPDX-License-Identifier: MIT
"""Leak: batches of a data loader are kept by what reads ahead of the training."""
import leak_truth as truth
import torch
from torch.utils.data import DataLoader, TensorDataset

model, optimizer = truth.small_model()
data = TensorDataset(torch.ones(30 * 64, 512))
ahead = []
for (batch,) in DataLoader(data, batch_size=64):  # owner
    ahead.append(batch)
    truth.train(model, optimizer)
truth.tell("leak", truth.kept_bytes(ahead) / len(ahead), "loader")
