# SPDX-License-Identifier: MIT
"""Called by test_existing.py: a stand-in for torch on CUDA, which there is none of here. A module
`torch` whose snapshot lists blocks, and the library that reports them (bench/hook_cost.c's kind):
the recorder sees what it would see of the real one."""
import ctypes
import sys
import types

library = ctypes.CDLL(sys.argv[1])  # libc10.so: report(address, size)
ctypes.CDLL(sys.argv[2])            # libc10_cuda.so: is there
report = library.report
report.argtypes = [ctypes.c_void_p, ctypes.c_int64]
report.restype = None

live = {0x7f0000000000 + 512 * i: 512 for i in range(100)}
for address, size in live.items():
    report(address, size)


def is_initialized():
    """Some blocks are born when the hooks are there and the list is not yet made."""
    for i in range(200, 250):
        live[0x7f0000000000 + 512 * i] = 512
        report(0x7f0000000000 + 512 * i, 512)
    return True


def memory_snapshot():
    """One segment of 300 blocks. Meanwhile a block is freed and another is born; one has been freed and
    waits for its streams."""
    blocks, address = [], 0x7f0000000000
    for i in range(300):
        blocks.append({"size": 512, "state": "active_allocated" if address in live else
                                             "active_pending_free" if i == 260 else "inactive"})
        address += 512
    freed = 0x7f0000000000 + 512 * 7
    del live[freed]
    report(freed, -512)
    born = 0x7f0000000000 + 512 * 150
    live[born] = 1024
    report(born, 1024)
    return [{"address": 0x7f0000000000, "device": 0, "blocks": blocks}]


torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(is_initialized=is_initialized, memory_snapshot=memory_snapshot)
sys.modules["torch"] = torch
print("ready", flush=True)
sys.stdin.readline()
for address in list(live):
    report(address, -live.pop(address))
print("done", flush=True)
sys.stdin.readline()
