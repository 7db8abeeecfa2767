#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a newer torch: gradients have their parameters' names, and Python is seldom asked for them.

    tests/gpu/check_gradients.py TIDEMARK OUT

The trainings of tests/torch/owners/gradients.py and gradient_cases.py, which CI runs with a stand-in for a function that
its torch lacks (tests/torch/test_gradients.py). Writes each check to OUT/check_gradients.json, exit 1 when one fails."""
import collections
import csv
import json
import os
import subprocess
import sys

from checks import Checks, command_line

OWNERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch", "owners")
TIDEMARK, OUT, _ = command_line(__doc__, needs_gpu=False)
CHECKS = Checks()


def trained(run, script, *options):
    """(lines that it printed, rows of its gradients: step, name, bytes)"""
    done = subprocess.run([TIDEMARK, "run", "--quiet", "-o", run, "--", sys.executable, os.path.join(OWNERS, script),
                           *options], capture_output=True, text=True)
    if done.returncode:
        CHECKS.add(f"{script} {' '.join(options)} runs", False, stderr=done.stderr[-2000:])
        return [], []
    rows = subprocess.run([TIDEMARK, "query", run, "SELECT step, tensor, size FROM allocations WHERE "
                           "category = 'gradient' AND tensor IS NOT NULL", "--format", "csv"],
                          capture_output=True, text=True, check=True).stdout.splitlines()
    return list(map(json.loads, done.stdout.splitlines())), list(csv.reader(rows))[1:]


def differences(rows, expected):
    rows, expected = collections.Counter(rows), collections.Counter(expected)
    return {"n": sum(expected.values()), "missing": sorted((expected - rows).items())[:8],
            "wrong": sorted((rows - expected).items())[:8]}


def check_names():
    lines, rows = trained(os.path.join(OUT, "gradients.tmk"), "gradients.py")
    found = differences([(int(step), name, int(size)) for step, name, size in rows],
                        [(i, name, size) for i, step in enumerate(lines[:-1]) for name, size in step.items()])
    CHECKS.add("each gradient of each step has its parameter's name",
               found["n"] > 150 and not found["missing"] and not found["wrong"], **found)


def check_case(name):
    lines, rows = trained(os.path.join(OUT, f"gradients_{name}.tmk"), "gradient_cases.py", name)
    steps, asked = [step for step, _ in lines[:-1]], [n for _, n in lines[:-1]]
    found = differences([(name, int(size)) for _, name, size in rows],
                        [pair for step in steps for pair in step.items()])
    CHECKS.add(f"{name}: the same", found["n"] > 0 and not found["missing"] and not found["wrong"], **found)
    n_inputs = 1  # of a root: Python is asked for its address
    often = sum(n > n_inputs for n in asked)
    CHECKS.add(f"{name}: Python is asked seldom", often < len(asked) * (0.6 if name == "shared" else 0.35),
               often=often, backwards=len(asked))


check_names()
for case in ("late", "inputs", "turns", "gone", "captured", "shared"):
    check_case(case)
lines, _ = trained(os.path.join(OUT, "gradients_taken.tmk"), "gradient_cases.py", "taken")
CHECKS.add("gradients that other threads take: the program lives", len(lines) == 301)
CHECKS.save(OUT, "check_gradients")
sys.exit(CHECKS.exit_status())
