# SPDX-License-Identifier: MIT
"""Run a script of the workloads, then keep everything and say what torch holds: card_torch.py SCRIPT ARGS...

Waits, so that the card is looked at, and ends without giving anything back."""
import json
import os
import runpy
import sys
import time

import torch

from checks import need_gpu

need_gpu(torch.cuda.is_available())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
torch.cuda.synchronize()
time.sleep(2.5)
stats = torch.cuda.memory_stats()
free, total = torch.cuda.mem_get_info()
print(json.dumps({"reserved": torch.cuda.memory_reserved(), "allocated": torch.cuda.memory_allocated(),
                  "max_allocated": torch.cuda.max_memory_allocated(), "stats": stats.get("reserved_bytes.all.current"),
                  "device_used": total - free, "backend": torch.cuda.get_allocator_backend()}), flush=True)
os._exit(0)
