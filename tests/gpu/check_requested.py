#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether a block's requested size can be had from the table of functions of torch's CUDA allocator, and what it costs.

    tests/gpu/check_requested.py TIDEMARK OUT

The recorder sees rounded sizes (docs/decisions.md). This says of the torch at hand whether the allocator is an object as
requested_probe.c expects, whether every block's size is seen there to the byte (torch's own snapshot has it), and how many
nanoseconds a call through a table of ours takes more. Each check goes to OUT/check_requested.json, exit 1 when one fails."""
import ctypes
import os
import random
import statistics
import subprocess
import sys
import time

from checks import Checks, command_line

HERE = os.path.dirname(os.path.abspath(__file__))
OBJECT = "_ZN3c104cuda20CUDACachingAllocator9allocatorE"  # std::atomic<CUDAAllocator *>
TIDEMARK, OUT, _ = command_line(__doc__)
CHECKS = Checks()

import torch  # noqa: E402 (only where there is a GPU)


def maps():
    """[(first, last, permissions, file)] of this process."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        rows = [line.split(None, 5) for line in file]
    return [(*(int(end, 16) for end in row[0].split("-")), row[1], row[5].strip() if len(row) > 5 else "") for row in rows]


def place_of(address):
    return next(((how, os.path.basename(file)) for first, last, how, file in maps() if first <= address < last), ("", ""))


def word_at(address):
    return ctypes.c_uint64.from_address(address).value


def probe():
    library = os.path.join(OUT, "requested_probe.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "requested_probe.c")], check=True)
    found = ctypes.CDLL(library)
    found.probe_start.argtypes = [ctypes.c_void_p, ctypes.c_uint]
    return found


def look_at_object():
    """(address of the allocator, slots of its table that are functions); None: it is not as we know it."""
    path = next((file for *_, file in maps() if os.path.basename(file).startswith("libc10_cuda.so")), None)
    try:
        allocator = word_at(ctypes.addressof(ctypes.c_uint64.in_dll(ctypes.CDLL(path), OBJECT))) if path else 0
    except ValueError:
        allocator = 0
    if not allocator:
        return None
    table, n = word_at(allocator), 0
    while n < 96 and place_of(word_at(table + 8 * n))[0].startswith("r-x"):
        n += 1
    CHECKS.add("the table is libc10_cuda's, and so is the function for allocate()", n > 2 and
               place_of(table)[1] == place_of(word_at(table + 16))[1] == os.path.basename(path), slots=n, version=torch.__version__)
    return allocator, n


def check_sizes(library, allocator, n):
    """What the probe sees of blocks that live, against torch's snapshot."""
    roll = random.Random(1)
    library.probe_start(allocator, n)
    kept = [torch.empty(roll.randrange(1, 1 << roll.randrange(2, 24)), dtype=torch.uint8, device="cuda") for _ in range(2000)]
    library.probe_stop()
    address, size, seen = ctypes.c_uint64(), ctypes.c_uint64(), {}
    for i in range(library.probe_get(0, ctypes.byref(address), ctypes.byref(size))):
        library.probe_get(i, ctypes.byref(address), ctypes.byref(size))
        seen[address.value] = size.value
    blocks = {}
    for segment in torch.cuda.memory_snapshot():
        at = segment["address"]
        for block in segment["blocks"]:
            blocks[block.get("address", at)] = block.get("requested_size")
            at += block["size"]
    wrong = sum(blocks.get(t.data_ptr()) != t.numel() or seen.get(t.data_ptr()) != t.numel() for t in kept)
    CHECKS.add("every block's requested size is seen to the byte", wrong == 0, blocks=len(kept), wrong=wrong)


def check_cost(library, allocator, n):
    def nanoseconds():
        start = time.perf_counter_ns()
        for _ in range(20_000):
            torch.empty(1000, device="cuda")
        return (time.perf_counter_ns() - start) / 20_000

    plain, probed = [], []
    for _ in range(15):
        plain.append(nanoseconds())
        library.probe_start(allocator, n)
        probed.append(nanoseconds())
        library.probe_stop()
    more = statistics.median(b - a for a, b in zip(plain, probed))
    CHECKS.add("a call through our table costs little beside an empty tensor", more < 0.01 * statistics.median(plain),
               ns_more=round(more, 1), ns_plain=round(statistics.median(plain), 1))


def main():
    if not torch.cuda.is_available():
        CHECKS.skip("the CUDA allocator", "torch has no CUDA here")
        return
    torch.empty(1, device="cuda")
    found = look_at_object()
    CHECKS.add("the allocator is found", found is not None, version=torch.__version__)
    if found:
        library = probe()
        check_sizes(library, *found)
        check_cost(library, *found)


main()
CHECKS.save(OUT, "check_requested")
sys.exit(CHECKS.exit_status())
