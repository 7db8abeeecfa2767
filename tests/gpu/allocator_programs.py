#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that move torch's caching allocator, and what it says of itself at their end.

    tests/gpu/allocator_programs.py NAME [--seed N] [--fraction F] [--snapshot FILE] [--entries N]

Names: lora, varlen (LoRA with random lengths), growth (until out of memory), streams (two side streams
with tensors handed over), churn (random sizes and lives). The same name and seed ask for the same blocks in the same order,
whatever PYTORCH_CUDA_ALLOC_CONF says, so one recorded run can be held against the allocator's own figures
under any setting. Prints one JSON object; --snapshot keeps torch's own memory history too."""
import argparse
import json
import os
import pickle
import random

import torch
from torch import nn

from checks import need_gpu


def lora(a, n_steps=40, lengths=(128, 128)):
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=512, intermediate_size=2048, num_hidden_layers=4, num_attention_heads=8,
                         num_key_value_heads=8, vocab_size=8000)
    model = get_peft_model(LlamaForCausalLM(config).cuda(), LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    for _ in range(n_steps):
        tokens = torch.randint(0, 8000, (4, random.randint(*lengths)), device="cuda")
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def varlen(a):
    lora(a, 60, (32, 512))


def growth(a):
    """As tests/torch/workloads/oom_growth.py: the batch grows and odd buffers stay behind."""
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


def streams(a):
    """Tensors made on side streams, some handed to another stream; waits make every end predictable."""
    side = [torch.cuda.Stream(), torch.cuda.Stream()]
    kept = []
    for i in range(400):
        with torch.cuda.stream(side[i % 2]):
            x = torch.empty(random.randint(1 << 10, 24 << 20), dtype=torch.uint8, device="cuda")
            y = torch.empty(random.randint(1 << 10, 2 << 20), dtype=torch.uint8, device="cuda")
            x.fill_(1)
        z = torch.empty(random.randint(1 << 12, 8 << 20), dtype=torch.uint8, device="cuda")
        if i % 5 == 0:
            x.record_stream(side[1 - i % 2])
        kept.append((x, z) if i % 3 else (y,))
        del x, y, z
        torch.cuda.synchronize()
        while len(kept) > 12:
            kept.pop(random.randrange(len(kept)))


def churn(a, n=20000):
    """Random sizes, small and large, with lives of all lengths; about 2 GiB alive at most."""
    alive, n_bytes = [], 0
    for _ in range(n):
        kind = random.random()
        size = (random.randint(1, 1 << 14) if kind < 0.4 else random.randint(1, 1 << 20) if kind < 0.7 else
                random.randint(1 << 20, 12 << 20) if kind < 0.95 else random.randint(10 << 20, 150 << 20))
        while alive and n_bytes + size > 2 << 30 or len(alive) > 500:
            last = alive.pop(random.randrange(len(alive)))
            n_bytes -= last.numel()
            del last
        alive.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        n_bytes += size


def figures(a, oom):
    stats = torch.cuda.memory_stats()
    keys = {"peak_allocated": "allocated_bytes.all.peak", "peak_reserved": "reserved_bytes.all.peak",
            "peak_requested": "requested_bytes.all.peak", "cur_allocated": "allocated_bytes.all.current",
            "cur_reserved": "reserved_bytes.all.current", "num_alloc": "allocation.all.allocated",
            "segments_peak": "segment.all.peak", "retries": "num_alloc_retries", "ooms": "num_ooms",
            "device_allocs": "num_device_alloc", "device_frees": "num_device_free"}
    total = torch.cuda.get_device_properties(0).total_memory
    return {"program": a.name, "seed": a.seed, "fraction": a.fraction, "total": total, "torch": torch.__version__,
            "conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), "oom": oom,
            **{key: stats.get(name) for key, name in keys.items()}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=["lora", "varlen", "growth", "streams", "churn"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fraction", type=float)
    parser.add_argument("--snapshot")
    parser.add_argument("--entries", type=int, default=1000000)
    a = parser.parse_args()
    need_gpu(torch.cuda.is_available())
    torch.manual_seed(a.seed)
    random.seed(a.seed)
    if a.fraction:
        torch.cuda.set_per_process_memory_fraction(a.fraction)
    if a.snapshot:
        torch.cuda.memory._record_memory_history(stacks="python", max_entries=a.entries)
    oom = None
    try:
        globals()[a.name](a)
    except torch.cuda.OutOfMemoryError as reason:
        oom = str(reason)
    print(json.dumps(figures(a, oom)), flush=True)
    if a.snapshot:
        with open(a.snapshot, "wb") as file:
            pickle.dump(torch.cuda.memory._snapshot(), file, protocol=4)


main()
