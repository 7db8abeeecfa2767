# SPDX-License-Identifier: MIT
"""Run the programs that are named as the main program of a process each, which has torch loaded already."""
import os
import sys

import torch  # noqa: F401 (the children have it)

for path in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        sys.argv, __file__ = [path], path
        with open(path, encoding="utf-8") as source:
            exec(compile(source.read(), path, "exec"))
        break
    os.waitpid(child, 0)
