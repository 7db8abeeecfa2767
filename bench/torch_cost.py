#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch_cost.py - what a block costs with a Python stack, by depth. Run it watched:

    tidemark run -o c.tmk -- python3 bench/torch_cost.py build/hooks/libc10.so

Needs no torch: that library (hook_cost.c) reports blocks as torch's would, from Python functions
nested so deep.
Prints one JSON object: for each depth the mean ns of an allocation (and the median of batches) and
of a free; and the medians of both when 4 MiB of other memory are gone through before each, which
is what a block finds in a training.
"""
import ctypes
import json
import sys

DEPTHS = (1, 4, 12, 20, 40, 80)


def measure(library, depth, n_batches):
    if depth > 1:
        return measure(library, depth - 1, n_batches)
    figures = [ctypes.c_double() for _ in range(5)]
    if library.hook_cost(n_batches, *map(ctypes.byref, figures[:3])) != 0 or \
            library.hook_cost_cold(5 * n_batches, *map(ctypes.byref, figures[3:])) != 0:
        sys.exit("out of memory")
    return [round(figure.value, 1) for figure in figures]


def main():
    library = ctypes.CDLL(sys.argv[1])
    n_batches = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    measure(library, 1, 20)
    result = {}
    for depth in DEPTHS:
        # This function, the module and measure() itself stand around it.
        alloc, free, median, cold_alloc, cold_free = measure(library, depth - 2, n_batches) if depth > 2 \
            else measure(library, 1, n_batches)
        result[max(depth, 3)] = {"alloc_ns": alloc, "alloc_median_ns": median, "free_ns": free,
                                 "cold_alloc_ns": cold_alloc, "cold_free_ns": cold_free}
    print(json.dumps(result))


main()
