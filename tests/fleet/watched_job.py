# SPDX-License-Identifier: MIT
"""A watched process that does what it is told on stdin: allocate, free, steps, OOMs, driver segments.

    alloc GPU OFFSET BYTES [CATEGORY]    a block at OFFSET of the last segment
    free GPU OFFSET
    segment BYTES                        memory of the stand-in driver, on its GPU 0
    steps N BYTES                        N steps of 10 ms, each keeps BYTES more on GPU 0
    batches N BYTES                      N steps of 10 ms, each needs BYTES more than the last, and keeps none
    step N
    oom GPU BYTES
"""
import ctypes
import os
import sys
import time

TIDEMARK = ctypes.CDLL(None)
CUDA_TYPE = 1 << 8
state = {"base": 0x7F0000000000, "kept": 0x100000000, "step": 0}


def device(gpu):
    return 0 if gpu == "host" else CUDA_TYPE + int(gpu)


def address(offset):
    return ctypes.c_void_p(state["base"] + int(offset))


def alloc(gpu, offset, size, category=None):
    TIDEMARK.tidemark_record_alloc(device(gpu), address(offset), ctypes.c_uint64(int(size)), None)
    if category:
        TIDEMARK.tidemark_record_tag(device(gpu), address(offset), int(category), None)


def free(gpu, offset):
    TIDEMARK.tidemark_record_free(device(gpu), address(offset))


# As torch's allocator does it: whose memory a segment is follows from the file of the caller.
SEGMENT = """
def segment(size):
    cuda, context, found = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_ulonglong()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(found), ctypes.c_size_t(int(size))) == 0
    state["base"] = found.value
"""
exec(compile(SEGMENT, "/usr/lib/python3/site-packages/torch/cuda/memory.py", "exec"))


def step(number):
    state["step"] = int(number)
    TIDEMARK.tidemark_record_step(ctypes.c_int64(int(number)))


def steps(n, size):
    for _ in range(int(n)):
        step(state["step"] + 1)
        state["kept"] += 1 << 30
        alloc("0", state["kept"], size)
        alloc("0", 1, 1000)
        free("0", 1)
        time.sleep(0.01)


def batches(n, size):
    for i in range(int(n)):
        step(state["step"] + 1)
        alloc("0", 1, (i + 1) * int(size))
        free("0", 1)
        time.sleep(0.01)


def oom(gpu, size):
    TIDEMARK.tidemark_record_oom(device(gpu), ctypes.c_uint64(int(size)), ctypes.c_uint64(0), None)


def main():
    free("host", 0)  # from now on it is watched
    print(os.getpid(), flush=True)
    for line in sys.stdin:
        word, *arguments = line.split()
        {"alloc": alloc, "free": free, "segment": globals()["segment"], "steps": steps, "step": step,
         "batches": batches, "oom": oom}[word](*arguments)
        print("done", flush=True)


main()
