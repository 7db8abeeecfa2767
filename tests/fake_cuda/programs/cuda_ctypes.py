# SPDX-License-Identifier: MIT
"""cuda_ctypes.py - allocate through ctypes, and print what, as the C programs do (cuda_list.h)."""
import ctypes
import json
import os
import sys

MIB = 1 << 20
LINES = []
CUDA = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    code = getattr(CUDA, name)(*arguments)
    if code:
        sys.exit(f"{name}: {code}")


def listed(family, device, address, size):
    LINES.append({"pid": os.getpid(), "family": family, "device": device, "address": address.value,
                  "size": size, "freed": False})
    return LINES[-1]


def alloc(size):
    address = ctypes.c_ulonglong()
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    return address, listed("device", 0, address, size)


def main():
    context = ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    address, line = alloc(3 * MIB)
    alloc(1000)
    call("cuMemFree_v2", address)
    line["freed"] = True
    host = ctypes.c_void_p()
    call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(MIB), 0)
    ctypes.memset(host, 1, MIB)
    listed("pinned", None, host, MIB)
    queued = ctypes.c_ulonglong()
    call("cuMemAllocAsync", ctypes.byref(queued), ctypes.c_size_t(2 * MIB), None)
    line = listed("async", 0, queued, 2 * MIB)
    pool, reserved = ctypes.c_void_p(), ctypes.c_ulonglong()
    call("cuDeviceGetDefaultMemPool", ctypes.byref(pool), 0)
    call("cuMemPoolGetAttribute", pool, 5, ctypes.byref(reserved))
    listed("pool", 0, pool, reserved.value)
    call("cuMemFreeAsync", queued, None)
    line["freed"] = True
    for line in LINES:
        print(json.dumps(line))


main()
