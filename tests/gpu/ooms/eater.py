# SPDX-License-Identifier: MIT
"""Take all of the card's memory but so many MiB, say "ready", and keep it until stdin ends: eater.py LEFT"""
import sys

import torch
from oom_kit import need_gpu

need_gpu()
free, total = torch.cuda.mem_get_info()
taken = torch.empty(free - (int(sys.argv[1]) << 20), dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
print("ready", taken.numel(), flush=True)
sys.stdin.read()
