#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch_cost.py - what a block costs with a Python stack, by depth. Run it watched:

    tidemark run -o c.tmk -- python3 bench/torch_cost.py build/hooks/libc10.so

Needs no torch: that library (hook_cost.c) reports blocks as torch's would, from Python functions
nested so deep; each is another function, as in a training, and lies on another page.
Prints one JSON object: for each depth, and for a thread of autograd's, the mean ns of an allocation
(and the median of batches) and of a free; and the medians of both when 512 KiB and when 4 MiB of other
memory are gone through before each, which is what a block finds in a training.
"""
import ctypes
import json
import sys

DEPTHS = (3, 4, 12, 20, 40, 80)
COLD_BYTES = (512 << 10, 4 << 20)
BODY = "\n".join(f"        x = (x, {i})" for i in range(60))
SOURCE = f"""
def level(x, inner, rest):
    if x is None:
{BODY}
    return rest[0](None if x is None else x, inner, rest[1:]) if rest else inner()
"""


def functions(n):
    """That many of their own code, apart from each other."""
    made, apart = [], []
    for i in range(n):
        names = {}
        exec(compile(SOURCE, f"level{i}.py", "exec"), names)  # pylint: disable=exec-used
        made.append(names["level"])
        apart.append([bytearray(500) for _ in range(8)])
    return made


def autograd(library, n_batches):
    """The same on a thread without a Python stack."""
    cold = {}
    for n_bytes in COLD_BYTES:
        figures = (ctypes.c_double * 5)()
        if library.hook_cost_of_autograd(n_batches, ctypes.c_size_t(n_bytes), figures):
            sys.exit("out of memory")
        alloc, free, median, *pair = (round(figure, 1) for figure in figures)
        cold[f"after_{n_bytes >> 10}_kib"] = pair
    return {"alloc_ns": alloc, "alloc_median_ns": median, "free_ns": free, "alloc_and_free_ns": cold}


def measure(library, n_batches):
    figures = [ctypes.c_double() for _ in range(3)]
    failed = library.hook_cost(n_batches, *map(ctypes.byref, figures))
    cold = {}
    for n_bytes in COLD_BYTES:
        pair = [ctypes.c_double() for _ in range(2)]
        failed = failed or library.hook_cost_cold(5 * n_batches, ctypes.c_size_t(n_bytes), *map(ctypes.byref, pair))
        cold[f"after_{n_bytes >> 10}_kib"] = [round(figure.value, 1) for figure in pair]
    if failed:
        sys.exit("out of memory")
    alloc, free, median = (round(figure.value, 1) for figure in figures)
    return {"alloc_ns": alloc, "alloc_median_ns": median, "free_ns": free, "alloc_and_free_ns": cold}


def main():
    library = ctypes.CDLL(sys.argv[1])
    n_batches = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    measure(library, 20)
    result = {"autograd": autograd(library, n_batches)}
    for depth in DEPTHS:
        # The module, this function, the lambda and measure() itself stand around them.
        levels = functions(max(0, depth - 4))
        inner = lambda: measure(library, n_batches)  # noqa: E731
        result[depth] = measure(library, n_batches) if depth == 3 else \
            levels[0](0, inner, levels[1:]) if levels else inner()
    print(json.dumps(result))


main()
