# SPDX-License-Identifier: MIT
"""Run the programs that are named, each in a process of its own that has torch loaded already; a few at once.
Writes a line "PID PROGRAM" for each to the file that PROGRAM_PIDS names, if it does."""
import os
import runpy
import sys

import torch

AT_ONCE = 6
children, failed = set(), False


def wait_for_one():
    global failed
    pid, status = os.wait()
    children.discard(pid)
    failed |= status != 0


def note(pid, path):
    if "PROGRAM_PIDS" in os.environ:
        with open(os.environ["PROGRAM_PIDS"], "a", encoding="utf-8") as file:
            file.write(f"{pid} {path}\n")


for path in sys.argv[1:]:
    if len(children) == AT_ONCE:
        wait_for_one()
    pid = os.fork()
    if pid == 0:
        torch.set_num_threads(1)
        sys.argv = [path]
        sys.path[0] = os.path.dirname(path)
        runpy.run_path(path, run_name="__main__")
        sys.exit(0)
    note(pid, path)
    children.add(pid)
while children:
    wait_for_one()
sys.exit(failed)
