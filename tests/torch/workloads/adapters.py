# SPDX-License-Identifier: MIT
"""A small transformer with low-rank adapters, as LoRA has them, made by hand (no peft):
adapters.py [--rank 8] [--checkpointing] [--batch 4] [--device cpu]."""
import argparse

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

try:
    import tidemark
except ImportError:
    tidemark = None

ap = argparse.ArgumentParser()
ap.add_argument("--device", default="cpu")
ap.add_argument("--steps", type=int, default=6)
ap.add_argument("--layers", type=int, default=4)
ap.add_argument("--dim", type=int, default=128)
ap.add_argument("--batch", type=int, default=4)
ap.add_argument("--seq", type=int, default=64)
ap.add_argument("--rank", type=int, default=8)
ap.add_argument("--checkpointing", action="store_true")
ap.add_argument("--wrapped", action="store_true", help="the model inside another, as DDP does it")
a = ap.parse_args()


class Adapted(nn.Module):
    """A frozen linear layer and what is learned beside it: x W + x A B."""

    def __init__(self, dim, rank):
        super().__init__()
        self.base = nn.Linear(dim, dim, bias=False).requires_grad_(False)
        self.lora_A = nn.Linear(dim, rank, bias=False)
        self.lora_B = nn.Linear(rank, dim, bias=False)

    def forward(self, x):
        return self.base(x) + self.lora_B(self.lora_A(x))


class Layer(nn.Module):
    def __init__(self, dim, rank):
        super().__init__()
        self.norm = nn.LayerNorm(dim).requires_grad_(False)
        self.q, self.v = Adapted(dim, rank), Adapted(dim, rank)
        self.up = nn.Linear(dim, 4 * dim).requires_grad_(False)
        self.down = nn.Linear(4 * dim, dim).requires_grad_(False)

    def forward(self, x):
        h = self.norm(x)
        q, v = self.q(h), self.v(h)
        x = x + torch.softmax(q @ q.transpose(1, 2) / h.shape[-1] ** 0.5, -1) @ v
        return x + self.down(torch.relu(self.up(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer(a.dim, a.rank) for _ in range(a.layers))

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if a.checkpointing else layer(x)
        return x


class Wrapper(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


torch.manual_seed(0)
model = Model().to(a.device)
if a.wrapped:
    model = Wrapper(model)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for step in range(a.steps):
    x = torch.randn(a.batch, a.seq, a.dim, device=a.device)
    loss = model(x).square().mean()
    loss.backward()
    if tidemark:
        tidemark.mark("gradients", str(step))  # parameters, gradients and optimizer state: all alive
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {loss.item():.9f}", flush=True)
