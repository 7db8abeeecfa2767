# SPDX-License-Identifier: MIT
"""What is allocated on a card right now: as torch said it, while the driver has not said otherwise."""
import os
import subprocess

from driver_kit import PYTHON, REPO
from fault_kit import program

SCRIPT = """
import ctypes
import tidemark
import tidemark._figures as figures
usage = tidemark._lib._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
usage.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint16]
CUDA_0, CUDA_1, MIB = 1, 1 | 1 << 8, 1 << 20
driver = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()

def known(card=0):
    row = tidemark._lib.tally(figures.CARD + card)
    return figures.ROW.unpack(row)[1:] if row else None

usage(4096, 512, 512, 2 * MIB, CUDA_0)
assert known() is None  # the driver's calls were not seen: what is reserved may have changed unheard
assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
driver.cuMemAlloc_v2.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
driver.cuMemFree_v2.argtypes = [ctypes.c_uint64]
assert driver.cuMemAlloc_v2(ctypes.byref(pointer), 2 * MIB) == 0
assert known() is None  # torch has not said anything since
usage(8192, 1024, 1536, 2 * MIB, CUDA_0)
assert known() == (1536, 2 * MIB, 1536, 2 * MIB)
usage(8192, -1024, 512, 2 * MIB, CUDA_0)
assert known() == (512, 2 * MIB, 1536, 2 * MIB)
assert known(1) is None
usage(4096, -512, 0, 2 * MIB, CUDA_0)
assert driver.cuMemFree_v2(pointer) == 0  # as torch.cuda.empty_cache() does: torch says nothing of it
assert known() is None
usage(4096, 512, 512, 0, CUDA_0)
assert known() == (512, 0, 1536, 2 * MIB)
"""


def test_tally_of_a_card(cards, tmp_path):
    env = {**os.environ, **cards.environment(PYTHONPATH=str(REPO / "python"), PYTHONDONTWRITEBYTECODE="1",
                                             TIDEMARK_RING_DIR=str(tmp_path))}
    watched = [str(program("tidemark")), "run", "--quiet", "-o", str(tmp_path / "a.tmk"), "--"]
    done = subprocess.run([*watched, PYTHON, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
