# truth: clean
# activation checkpointing in a deep net
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64)) for _ in range(6))
opt = torch.optim.AdamW(blocks.parameters())
for step in range(40):
    x = torch.randn(256, 64, requires_grad=True)
    h = x
    for block in blocks:
        h = h + checkpoint(block, h)
    loss = h.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
