# SPDX-License-Identifier: MIT
"""A CuPy program that says what its pool holds."""
import json
import os
import time

from checks import need_gpu

need_gpu()
import cupy

arrays = [cupy.ones((n, 1024), dtype=cupy.float32) for n in (10, 1000, 20000, 50000)]
del arrays[1]
total = sum(float(a.sum()) for a in arrays)
cupy.cuda.Device().synchronize()
time.sleep(2.5)
print(json.dumps({"reserved": cupy.get_default_memory_pool().total_bytes(), "sum": total}), flush=True)
os._exit(0)
