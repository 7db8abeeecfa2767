# SPDX-License-Identifier: MIT
"""Run a script, then print what torch's own allocator has counted: with_stats.py SCRIPT ARGS...

A mark named "stats" is recorded at that moment, so that the trace can be asked for the same."""
import ctypes
import json
import runpy
import sys

import torch

from checks import need_gpu

need_gpu(torch.cuda.is_available())
sys.argv = sys.argv[1:]
error, script = None, {}
try:
    script = runpy.run_path(sys.argv[0], run_name="__main__")
except Exception as reason:  # running out of memory is what one of the scripts is for
    error = type(reason).__name__
torch.cuda.synchronize()
stats = torch.cuda.memory_stats()
process = ctypes.CDLL(None)
if hasattr(process, "tidemark_record_mark"):
    process.tidemark_record_mark(b"stats", b"")


def blocks_of_parameters(model):
    """Bytes of the blocks that hold them, as torch's allocator lists them: it may round up."""
    sizes = {}
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            sizes[address] = block["size"]
            address += block["size"]
    return sum(sizes.get(address, 0) for address in {p.untyped_storage().data_ptr() for p in model.parameters()})


names = {"allocations": "allocation.all.allocated", "frees": "allocation.all.freed",
         "live": "allocation.all.current", "bytes": "allocated_bytes.all.allocated",
         "live_bytes": "allocated_bytes.all.current", "peak_bytes": "allocated_bytes.all.peak",
         "peak_reserved": "reserved_bytes.all.peak", "reserved": "reserved_bytes.all.current",
         "ooms": "num_ooms"}
result = {"error": error, **{key: stats.get(name, 0) for key, name in names.items()}}
if "model" in script:
    result["parameter_blocks"] = blocks_of_parameters(script["model"])
print(json.dumps(result))
