# SPDX-License-Identifier: MIT
"""torch.profiler with CUDA activities, in a training that has run for a while: how many kernels and memory events it
saw, of which threads."""
import json
import time

import torch
from torch.profiler import ProfilerActivity, profile

from checks import need_gpu

need_gpu(torch.cuda.is_available())

model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
x = torch.randn(64, 256, device="cuda")
began = time.monotonic()
while time.monotonic() < began + 0.5:  # by then nobody was listening for long
    model(x).sum().backward()
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as profiler:
    for _ in range(3):
        model(x).sum().backward()
    torch.cuda.synchronize()
events = profiler.events()
kernels = sorted(e.name for e in events if e.device_type == torch.autograd.DeviceType.CUDA)
memory = [e for e in events if e.name == "[memory]"]
print(json.dumps({"kernels": len(kernels), "names": sorted(set(kernels))[:20], "memory": len(memory),
                  "bytes": sorted(e.device_memory_usage for e in memory), "threads": len({e.thread for e in memory})}))
