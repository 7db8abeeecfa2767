# SPDX-License-Identifier: MIT
"""Run the programs that are named, each in a process of its own that has torch loaded already; all at once."""
import os
import runpy
import sys

import torch  # noqa: F401 (the children have it)

children = []
for path in sys.argv[1:]:
    children.append(os.fork())
    if children[-1] == 0:
        sys.argv = [path]
        runpy.run_path(path, run_name="__main__")
        sys.exit(0)
sys.exit(1 if any([os.waitpid(child, 0)[1] for child in children]) else 0)
