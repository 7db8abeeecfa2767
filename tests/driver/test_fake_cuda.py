# SPDX-License-Identifier: MIT
"""The stand-in driver itself: the programs that the other tests watch get what they list, and its
accounts are a card's."""
import ctypes
import os
import subprocess

import pytest
from driver_kit import CONTEXT_BYTES, GIB, MIB, PYTHON, SCRIPTS

SCENES = ["families", "threads", "full", "vmm", "pools", "ipc", "contexts", "race",
          "streams"]
WAYS = [["cuda_linked"], ["cuda_linked_now"], ["cuda_pointers"], ["cuda_loaded", "dlsym"],
        ["cuda_loaded", "proc"], ["cuda_loaded", "thread"], ["cuda_loaded", "old_proc"]]


def shape(lines):
    """A list without what differs from run to run."""
    return sorted((line["family"], line["device"] is None, line["device"] or 0, line["size"],
                   line["freed"]) for line in lines)


@pytest.mark.parametrize("scene", SCENES)
def test_all_ways_lead_to_the_same(cards, scene):
    cards.make(*[4 * GIB] * {"threads": 8, "streams": 2}.get(scene, 1))
    lists = [shape(cards.run(cards.program(way[0]), *way[1:], scene)) for way in WAYS]
    assert lists[0]
    assert all(each == lists[0] for each in lists)


# ---- what a card has, asked through ctypes in a process of its own

ASK = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def number(name, *arguments):
    value = ctypes.c_ulonglong()
    code = getattr(cuda, name)(ctypes.byref(value), *arguments)
    return value.value if code == 0 else -code
def free_bytes():
    total = ctypes.c_size_t()
    return number("cuMemGetInfo_v2", ctypes.byref(total))
def alloc(size):
    return number("cuMemAlloc_v2", ctypes.c_size_t(size))
def free(address):
    return cuda.cuMemFree_v2(ctypes.c_ulonglong(address))
def start(device=0):
    code = cuda.cuInit(0)
    context = ctypes.c_void_p()
    code = code or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    return code or cuda.cuCtxSetCurrent(context)
"""


def ask(cards, script, **more):
    """What the script prints, word by word, as numbers."""
    env = {**os.environ, **cards.environment(**more)}
    done = subprocess.run([PYTHON, "-c", ASK + script], env=env, capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [int(word) for word in done.stdout.split()]


def test_rounding(cards):
    """A context costs; small ones share 2 MiB; larger ones have multiples of it."""
    cards.make(4 * GIB, more=f"reserved {100 * MIB}\nprocess 1 {200 * MIB}\nhidden {50 * MIB}\n")
    got = ask(cards, "print(start(), free_bytes())\n"
                     "small = [alloc(1000), alloc(1000)]\n"
                     "print(free_bytes(), small[1] - small[0])\n"
                     "large = alloc((2 << 20) + 1); print(free_bytes())\n"
                     "for a in [*small, large]: free(a)\n"
                     "print(free_bytes(), free(large))")
    empty = 4 * GIB - 350 * MIB - CONTEXT_BYTES
    assert got == [0, empty, empty - 2 * MIB, 1024, empty - 6 * MIB, empty, 1]


def test_full(cards):
    cards.make(400 * MIB)
    got = ask(cards, "print(start()); a = alloc(90 << 20)\n"
                     "print(alloc(12 << 20), free(a), int(alloc(12 << 20) > 0))")
    assert got == [0, -2, 0, 1]


def test_no_room_for_a_context(cards):
    cards.make(200 * MIB)
    assert ask(cards, "print(start(), alloc(1))") == [2, -201]


def test_not_started_and_no_card(cards):
    assert ask(cards, "print(alloc(1))") == [-3]
    assert ask(cards, "print(start())", FAKE_CUDA_STATE="/nowhere") == [100]
    assert ask(cards, "print(start())", CUDA_VISIBLE_DEVICES="") == [100]


def test_visible_devices(cards):
    cards.make(1 * GIB, 2 * GIB, 3 * GIB, more="uuid GPU-abcd\n")
    script = ("start(); print(number('cuDeviceGetCount'), number('cuDeviceTotalMem_v2', 0) >> 30,"
              "number('cuDeviceTotalMem_v2', 1) >> 30)")
    assert ask(cards, script) == [3, 1, 2]
    assert ask(cards, script, CUDA_VISIBLE_DEVICES="GPU-ab,0") == [2, 3, 1]
    assert ask(cards, script, CUDA_VISIBLE_DEVICES="1,9,0") == [1, 2, -101 >> 30]


class NvmlMemory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class NvmlProcess(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong),
                ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


def nvml(cards, monkeypatch, index):
    """(used bytes, {pid: bytes}) of a card, as NVML says."""
    monkeypatch.setenv("FAKE_CUDA_STATE", str(cards.state))
    library = ctypes.CDLL(cards.libraries + "/libnvidia-ml.so.1")
    device, memory = ctypes.c_void_p(), NvmlMemory()
    processes, count = (NvmlProcess * 16)(), ctypes.c_uint(16)
    assert library.nvmlInit_v2() == 0
    assert library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == 0
    assert library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
    assert library.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count),
                                                           processes) == 0
    return memory.used, {p.pid: p.used for p in processes[:count.value]}


def test_nvml_sees_who_uses_a_card(cards, monkeypatch):
    cards.make(4 * GIB, 4 * GIB, more=f"process 77 {5 * MIB}\n")
    held = CONTEXT_BYTES + 10 * MIB
    script = "start(1); alloc(10 << 20); print(flush=True); sys.stdin.read()"
    env = {**os.environ, **cards.environment()}
    with subprocess.Popen([PYTHON, "-c", ASK + script], env=env, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as user:
        user.stdout.readline()
        assert nvml(cards, monkeypatch, 0) == (0, {})
        assert nvml(cards, monkeypatch, 1) == (held + 5 * MIB, {77: 5 * MIB, user.pid: held})
        # The other process's bytes are gone for this one.
        assert ask(cards, "start(1); print(free_bytes())") == [
            4 * GIB - 5 * MIB - held - CONTEXT_BYTES]
        user.kill()
        os.waitid(os.P_PID, user.pid, os.WEXITED | os.WNOWAIT)  # dead, but not yet waited for
        assert nvml(cards, monkeypatch, 1) == (5 * MIB, {77: 5 * MIB})


def test_scripts(cards):
    cards.make(4 * GIB, 4 * GIB)
    assert len(cards.run(PYTHON, SCRIPTS / "cuda_ctypes.py")) == 5
    extension = cards.program("libfakeextension.so")
    assert len(cards.run(PYTHON, SCRIPTS / "cuda_extension.py", extension)) == 14
