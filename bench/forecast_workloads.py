# SPDX-License-Identifier: MIT
"""forecast_workloads.py KIND: a small training on the CPU that runs out of memory, or does not.

What bench/forecast_record.py records. Those that run out do so for real: the address space is limited
once the model is there, and torch's allocator is refused.
"""
import gc
import random
import resource
import sys

import torch
import torch.nn as nn

MB = 1 << 20
torch.manual_seed(0)
random.seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(6)])
optimizer = torch.optim.AdamW(model.parameters())


def limit(megabytes):
    with open("/proc/self/statm", encoding="ascii") as statm:
        size = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + megabytes * MB, resource.RLIM_INFINITY))


def step(rows):
    loss = (model(torch.randn(rows, 256)) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def until_full(megabytes, body, most=5000):
    step(64)
    limit(megabytes)
    try:
        for i in range(most):
            body(i)
    except (RuntimeError, MemoryError) as error:
        print(f"step {i}: {str(error)[:60]}")


kept = []


def leak_list(i):
    step(64)
    kept.append(torch.zeros(MB))


def leak_slow(i):
    step(64)
    kept.append(torch.zeros(64 * 1024))


def leak_graph(i):
    step(256)
    kept.append(model(torch.randn(256, 256)).sum())


def leak_uneven(i):
    step(random.randint(16, 512))
    if random.random() < 0.4:
        kept.append(torch.zeros(random.randint(1, 4) * 256 * 1024))


def leak_late(i):
    step(128)
    if i >= 60:
        kept.append(torch.zeros(512 * 1024))


def leak_under_garbage(i):
    class Node:
        pass
    node = Node()
    node.me, node.data = node, torch.zeros(256 * 1024)  # a cycle: freed when the collector runs
    if i % 25 == 24:
        gc.collect()
    step(64)
    kept.append(torch.zeros(200 * 1024))


def growing_batch(i):
    step(64)
    batch = torch.zeros(64 * 1024 + 2 * 1024 * i, requires_grad=True)
    batch.sin().cos().exp().tanh().sum().backward()


def growing_square(i):
    rows = 16 + 4 * i
    step(64)
    scores = torch.zeros(rows, rows) + torch.zeros(rows, rows)
    del scores


def growing_context(i):
    step(64)
    length = 4 + i // 8
    cache = [torch.zeros(128 * 1024) for _ in range(length)]
    del cache


def leak_at_evaluation(i):
    step(64)
    if i % 15 == 14:
        kept.append([model(torch.randn(2048, 256)) for _ in range(2)])


GROWS = {
    "leak_list": (700, leak_list), "leak_slow": (160, leak_slow), "leak_graph": (500, leak_graph),
    "leak_uneven": (400, leak_uneven), "leak_late": (500, leak_late),
    "leak_under_garbage": (400, leak_under_garbage), "growing_batch": (60, growing_batch),
    "growing_square": (60, growing_square), "growing_context": (60, growing_context),
    "leak_at_evaluation": (500, leak_at_evaluation),
}


def evaluation():
    for i in range(200):
        step(64)
        if i % 20 == 19:
            with torch.no_grad():
                model(torch.randn(4096, 256))


def lengths():
    for _ in range(300):
        step(random.randint(16, 512))


def long_batch():
    for i in range(200):
        step(4096 if i == 90 else 64)


def garbage():
    class Node:
        pass
    gc.disable()
    for i in range(300):
        node = Node()
        node.me, node.data = node, torch.zeros(512 * 1024)
        step(64)
        if i % 12 == 11:
            gc.collect()


def bounded_cache():
    cache = {}
    for _ in range(300):
        step(64)
        cache[random.randrange(24)] = torch.zeros(256 * 1024)


def accumulate():
    for i in range(200):
        loss = (model(torch.randn(128 + 64 * (i % 4), 256)) ** 2).mean()
        loss.backward()
        optimizer.step()
        if i % 4 == 3:
            optimizer.zero_grad()


def flat():
    for _ in range(150):
        step(256)


QUIET = {f.__name__: f for f in (evaluation, lengths, long_batch, garbage, bounded_cache, accumulate, flat)}

if __name__ == "__main__":
    if sys.argv[1] in GROWS:
        until_full(*GROWS[sys.argv[1]])
    else:
        QUIET[sys.argv[1]]()
