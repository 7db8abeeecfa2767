# SPDX-License-Identifier: MIT
"""Leak: a hidden state that is never detached, so that each loss goes back to the first. The optimizer makes no step."""
import leak_truth as truth
import torch

cell = torch.nn.GRUCell(64, 128)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.01)
state = torch.zeros(32, 128)
for _ in range(80):
    state = cell(torch.ones(32, 64), state)  # owner
    optimizer.zero_grad()
    state.square().mean().backward(retain_graph=True)
truth.tell("leak", None, "graph")
