#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a newer Python and torch: stacks of blocks within calls of modules.

    tests/gpu/check_frames.py TIDEMARK OUT

tests/torch/anchors_target.py, as CI runs it with its own Python and torch (test_anchors.py). Writes each check to
OUT/check_frames.json, exit 1 when one fails."""
import csv
import json
import os
import subprocess
import sys

from checks import Checks, command_line

TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch", "anchors_target.py")
TIDEMARK, OUT, _ = command_line(__doc__, needs_gpu=False)
CHECKS = Checks()
STACKS = """SELECT a.size, f.file, f.line, f.function FROM allocations a JOIN frames f ON f.stack_id = a.stack_id
            WHERE a.size % 4 = 3 ORDER BY a.id, f.depth"""


def check(options):
    run = os.path.join(OUT, "frames" + "".join(options) + ".tmk")
    done = subprocess.run([TIDEMARK, "run", "--quiet", *options, "-o", run, "--", sys.executable, TARGET],
                          capture_output=True, text=True)
    what = "stacks within calls of modules, " + (" ".join(options) or "all on")
    if done.returncode:
        CHECKS.add(what, False, stderr=done.stderr[-2000:])
        return
    rows = subprocess.run([TIDEMARK, "query", run, STACKS, "--format", "csv"], capture_output=True, text=True, check=True)
    seen = {}
    for size, file, line, function in list(csv.reader(rows.stdout.splitlines()))[1:]:
        seen.setdefault(size, []).append([file, int(line or 0), function])
    truth = json.loads(done.stdout)["stacks"]
    wrong = [size for size, stack in truth.items() if seen.get(size) != stack]
    CHECKS.add(what, len(truth) > 1000 and not wrong, n=len(truth), n_wrong=len(wrong),
               first=[seen.get(size) for size in wrong[:1]], truth=[truth[size] for size in wrong[:1]])


for options in ([], ["--no-modules"], ["--no-modules", "--no-categories"]):
    check(options)
CHECKS.save(OUT, "check_frames")
sys.exit(CHECKS.exit_status())
