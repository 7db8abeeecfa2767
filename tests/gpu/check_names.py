#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: owners that only names and functions tell, against what torch itself says.

    tests/gpu/check_names.py TIDEMARK OUT [CASE...]

Cases are those of owned.py. halved: at the peak of a model that is loaded in float32 and halved, at least
99 % are parameters. cache: what a server keeps of its sessions is kv_cache, to the byte. buckets: the
reducer's buckets, as many bytes as the parameters, are gradients. Writes each check with its figures to
OUT/check_names.json, exit 1 when one fails."""
import csv
import io
import json
import os
import subprocess
import sys

from checks import Checks, command_line

HERE = os.path.dirname(os.path.abspath(__file__))
DEVICE = "cuda:0"
LEAST = 0.99


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: status {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


class Case:
    def __init__(self, tidemark, out, name):
        self.tidemark, self.folder = tidemark, os.path.join(out, f"names_{name}.tmk")
        said = run([tidemark, "run", "--quiet", "-o", self.folder, "--", sys.executable,
                    os.path.join(HERE, "owned.py"), name])
        self.truth = json.loads(said.splitlines()[-1])

    def one(self, sql):
        """A single number, 0 for none."""
        text = run([self.tidemark, "query", self.folder, sql, "--format", "csv"])
        return int(list(csv.reader(io.StringIO(text)))[1][0] or 0)

    def peak(self):
        said = json.loads(run([self.tidemark, "peak", self.folder, "--by", "category", "--device", DEVICE, "--json"]))
        return said["allocated"], {row["key"]: row["bytes"] for row in said["by"]}


def halved(checks, case):
    allocated, categories = case.peak()
    checks.add("halved: peak is torch's", allocated == case.truth["peak_bytes"], found=allocated, **case.truth)
    checks.add("halved: parameters at the peak", categories.get("parameter", 0) >= LEAST * allocated, **categories)


def cache(checks, case):
    found = case.one("SELECT sum(size) FROM allocations WHERE category = 'kv_cache' AND free_ns IS NULL "
                     f"AND device = '{DEVICE}'")
    n = case.one("SELECT count(*) FROM allocations WHERE category = 'kv_cache' AND free_ns IS NULL "
                 f"AND device = '{DEVICE}'")
    checks.add("cache: bytes and blocks are the sessions'", (found, n) == (case.truth["cache_bytes"], case.truth["n"]),
               bytes=found, blocks=n, **case.truth)


def buckets(checks, case):
    made = ("FROM allocations a JOIN frames f ON f.stack_id = a.stack_id WHERE f.depth = 0 AND a.free_ns IS NULL "
            f"AND f.file LIKE '%/nn/parallel/distributed.py' AND a.device = '{DEVICE}'")
    found = case.one(f"SELECT sum(a.size) {made} AND a.category = 'gradient'")
    rest = case.one(f"SELECT count(*) {made} AND a.category <> 'gradient'")
    checks.add("buckets: as many bytes as the parameters, and nothing else",
               case.truth["parameter_bytes"] <= found <= 1.1 * case.truth["parameter_bytes"] and rest == 0,
               bytes=found, others=rest, **case.truth)


def main():
    tidemark, out, names = command_line(__doc__)
    checks, cases = Checks(), {"halved": halved, "cache": cache, "buckets": buckets}
    for name in names or cases:
        try:
            cases[name](checks, Case(tidemark, out, name))
        except (RuntimeError, subprocess.TimeoutExpired, ValueError, IndexError, KeyError) as reason:
            checks.add(f"{name}: runs", False, why=str(reason))
    checks.save(out, "check_names")
    sys.exit(checks.exit_status())


main()
