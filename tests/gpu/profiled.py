# SPDX-License-Identifier: MIT
"""torch.profiler with CUDA activities: how many kernels and memory events it saw."""
import json

import torch
from torch.profiler import ProfilerActivity, profile

model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
x = torch.randn(64, 256, device="cuda")
model(x).sum().backward()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as profiler:
    for _ in range(3):
        model(x).sum().backward()
    torch.cuda.synchronize()
events = profiler.events()
kernels = sorted(e.name for e in events if e.device_type == torch.autograd.DeviceType.CUDA)
memory = sum(1 for e in events if e.name == "[memory]")
print(json.dumps({"kernels": len(kernels), "names": sorted(set(kernels))[:20], "memory": memory}))
