# SPDX-License-Identifier: MIT
"""Models whose memory has owners that only names and functions tell: owned.py halved|cache|buckets.

Prints what torch itself says, as JSON."""
import json
import os
import sys

import torch
from torch import nn

from checks import need_gpu

need_gpu(torch.cuda.is_available())
CUDA = torch.device("cuda:0")


def blocks_of(*tensors):
    """Bytes of the tensors' blocks: the allocator rounds up to 512."""
    return sum(-(-tensor.numel() * tensor.element_size() // 512) * 512 for tensor in tensors)


def halved():
    """Loaded in float32, moved and halved before the first call: the peak is in half()."""
    model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8))).to(CUDA)
    model.half()
    peak = torch.cuda.max_memory_allocated()
    with torch.no_grad():
        model(torch.zeros(4, 2048, device=CUDA, dtype=torch.float16))
    return {"peak_bytes": peak}


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(512, 1536)

    def forward(self, x, past):
        q, k, v = (part.unflatten(-1, (8, 64)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        k, v = k.contiguous(), v.contiguous()
        return nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2), (k, v)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(4))

    def forward(self, x, past_key_values=None):
        new = []
        for i, layer in enumerate(self.layers):
            x, kv = layer(x, past_key_values and past_key_values[i])
            new.append(kv)
        return x, new


def cache():
    """A server that keeps the caches of its last sessions."""
    model, kept = Decoder().to(CUDA).eval(), {}
    with torch.inference_mode():
        for i in range(64):
            session = i * 7 % 12
            x = torch.randn(2, 32, 512, device=CUDA)
            _, kept[session] = model(x, past_key_values=kept.pop(session, None))
            if len(kept) > 8:
                del kept[next(iter(kept))]
    held = [tensor for past in kept.values() for kv in past for tensor in kv]
    return {"cache_bytes": blocks_of(*held), "n": len(held)}, kept


def buckets():
    """DistributedDataParallel, one rank: a copy of all gradients in buckets."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29531", RANK="0", WORLD_SIZE="1")
    torch.distributed.init_process_group("nccl")
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4))).to(CUDA))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(8, 1024, device=CUDA)).square().mean().backward()
        optimizer.step()
    parameters = sum(p.numel() * p.element_size() for p in model.parameters())
    return {"parameter_bytes": parameters}, model


result = {"halved": halved, "cache": cache, "buckets": buckets}[sys.argv[1]]()
print(json.dumps(result[0] if isinstance(result, tuple) else result), flush=True)
os._exit(0)
