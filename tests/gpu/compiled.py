# SPDX-License-Identifier: MIT
"""Train a compiled model (torch.compile, inductor) with one break in its graph: compiled.py [--device cuda].

Prints the losses, then what the compiler counted, as JSON: "counted {...}"."""
import argparse
import json

import torch
from torch import nn

from checks import need_gpu

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
parser.add_argument("--steps", type=int, default=12)
a = parser.parse_args()
need_gpu(a.device == "cpu" or torch.cuda.is_available())


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(256)
        self.first, self.second = nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x):
        return x + self.second(torch.nn.functional.gelu(self.first(self.norm(x))))


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        x = self.blocks(x)
        torch._dynamo.graph_break()
        return self.head(x)


torch.manual_seed(0)
model = torch.compile(Broken().to(a.device))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(a.steps):
    x = torch.randn(64, 256, device=a.device)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {loss.item():.9f}", flush=True)
counters = torch._dynamo.utils.counters
print("counted " + json.dumps({"graph_breaks": sum(counters["graph_break"].values()),
                               "stats": dict(counters["stats"]), "frames": dict(counters["frames"])}), flush=True)
