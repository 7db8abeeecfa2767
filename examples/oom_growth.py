"""Runs until torch.cuda.OutOfMemoryError: the batch grows and odd buffers are kept. Needs CUDA. oom_growth.py [--fraction 0.004]"""
import argparse
import random

import torch
import torch.nn as nn

ap = argparse.ArgumentParser()
ap.add_argument("--fraction", type=float, default=0.004)
a = ap.parse_args()

torch.manual_seed(0)
random.seed(0)
torch.cuda.set_per_process_memory_fraction(a.fraction)
model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
batch, bag = 256, []
while True:
    y = model(torch.randn(batch, 1024, device="cuda"))
    (y * y).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    bag.append(torch.empty(random.randint(1, 5) << 20, dtype=torch.uint8, device="cuda"))
    if len(bag) % 5 == 0:
        bag.pop(random.randrange(len(bag)))
    batch += 256
