# SPDX-License-Identifier: MIT
"""torch_children.py - forked workers of a process that has torch, as data loaders have them.

    torch_children.py N     N workers, one after the other, that make two tensors and end by
                            os._exit(); prints JSON: seconds, for all of them
"""
import json
import os
import sys
import time

import torch


def worker():
    torch.full((1024,), 1.0) + 1
    os._exit(0)


def main(n):
    kept = [torch.ones(1000) for _ in range(10)]  # the recording has begun
    start = time.perf_counter()
    for _ in range(n):
        pid = os.fork()
        if pid == 0:
            worker()
        _, status = os.waitpid(pid, 0)
        if status != 0:
            sys.exit("a worker failed")
    print(json.dumps({"seconds": time.perf_counter() - start, "kept": len(kept)}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
