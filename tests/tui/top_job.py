# SPDX-License-Identifier: MIT
"""A job to look at: it reports blocks, modules and steps on cuda:0 that are the same each time, and
then sleeps. Sizes are of a real model's order; nothing is allocated.

    tidemark run -- python3 top_job.py STEPS [GIB that each parameter is larger]
"""
import ctypes
import os
import sys
import time

RECORDER = ctypes.CDLL(None)
CUDA_0 = 256
STAGE, MODULE = 1, 2
PARAMETER, GRADIENT, OPTIMIZER, ACTIVATION = 1, 2, 3, 4
GIB, MIB = 1 << 30, 1 << 20


class Site(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("function", ctypes.c_char_p),
                ("line", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


RECORDER.tidemark_record_alloc.argtypes = [ctypes.c_uint, ctypes.c_void_p, ctypes.c_uint64,
                                           ctypes.c_void_p]
RECORDER.tidemark_record_free.argtypes = [ctypes.c_uint, ctypes.c_void_p]
RECORDER.tidemark_record_tag.argtypes = [ctypes.c_uint, ctypes.c_void_p, ctypes.c_uint,
                                         ctypes.c_char_p]
RECORDER.tidemark_record_step.argtypes = [ctypes.c_int64]
SITES = {line: Site(b"model.py", b"forward", line, 0) for line in (12, 34, 56, 78)}
last = 0x7000_0000_0000


def block(size, line, category, module):
    global last
    last += size
    RECORDER.tidemark_record_push(MODULE, module)
    RECORDER.tidemark_record_alloc(CUDA_0, last, size, ctypes.byref(SITES[line]))
    RECORDER.tidemark_record_tag(CUDA_0, last, category, None)
    RECORDER.tidemark_record_pop(MODULE)
    return last


def main(n_steps, more):
    for layer in range(4):
        name = b"layers.%d.mlp" % layer
        block(3 * GIB + more * GIB, 12, PARAMETER, name)
        block(3 * GIB + 512 * MIB, 34, OPTIMIZER, name)
    for step in range(n_steps):
        RECORDER.tidemark_record_step(step)
        blocks = [block(2 * GIB, 56, ACTIVATION, b"layers.%d.attn" % layer) for layer in range(4)]
        blocks += [block(GIB, 78, GRADIENT, b"layers.%d.mlp" % layer) for layer in range(4)]
        for address in blocks[:3]:
            RECORDER.tidemark_record_free(CUDA_0, address)
        if step < n_steps - 1:
            for address in blocks[3:]:
                RECORDER.tidemark_record_free(CUDA_0, address)
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(1000)


main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
