# SPDX-License-Identifier: MIT
"""leak on memory that is the driver's alone: pinned batches of a loader, and cudaMalloc of one who is not torch."""
import json
import subprocess

from driver_kit import MIB, PYTHON, program

PROGRAM = """\
import ctypes
cuda, recorder = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
context, kept = ctypes.c_void_p(), []
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
def pinned(size):
    address = ctypes.c_void_p()
    assert cuda.cuMemHostAlloc(ctypes.byref(address), ctypes.c_size_t(size), 0) == 0
    return address
def device(size):
    address = ctypes.c_ulonglong()
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    return address
for step in range(20):
    recorder.tidemark_record_step(ctypes.c_int64(step))
    recorder.tidemark_record_alloc(0, ctypes.c_void_p(4096), ctypes.c_uint64(64), None)
    recorder.tidemark_record_free(0, ctypes.c_void_p(4096))
    kept.append(pinned(256 << 10))
    kept.append(device(1 << 20))
    cuda.cuMemFreeHost(pinned(1 << 20))
    cuda.cuMemFree_v2(device(8 << 20))
recorder.tidemark_record_step(ctypes.c_int64(20))
"""


def test_leak(watch, cards, tmp_path):
    script = tmp_path / "load.py"
    script.write_text(PROGRAM, encoding="utf-8")
    assert watch(PYTHON, script, env=cards.environment()).returncode == 0
    done = subprocess.run([program("tidemark"), "leak", str(watch.run), "--json"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1, done.stderr
    leaks = json.loads(done.stdout)["leaks"]
    found = [(leak["device"], leak["file"], leak["line"], leak["function"], leak["bytes_per_step"], leak["blocks_per_step"])
             for leak in leaks]
    assert found == [("cuda:0", str(script), 13, "device", MIB, 1), ("cpu", str(script), 9, "pinned", MIB // 4, 1)]
