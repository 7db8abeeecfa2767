#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with a GPU: the whole card, against what programs and frameworks count themselves.

    tests/gpu/check_card.py TIDEMARK OUT [NAME...]

Names: encoder, lora, expandable, async, cupy, jax, jax_grows, plain, plain_shared, profiler. Segments of
torch must be what it has reserved, CuPy's what its pool holds, a CUDA program's those that it lists, byte
for byte; what the driver counts to the process beyond its segments must never be negative. Writes each
check with its figures to OUT/check_card.json, exit 1 when one fails."""
import csv
import io
import json
import os
import shutil
import subprocess
import sys

from checks import Checks, command_line

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = os.path.join(HERE, "..", "torch", "workloads")
CONF = "PYTORCH_CUDA_ALLOC_CONF"


class Card(Checks):
    """Programs that are watched, and what their runs say."""

    def __init__(self, tidemark, out):
        super().__init__()
        self.tidemark, self.out = tidemark, out

    def run(self, name, command, **more):
        """The program, watched; what it printed, and where its run is."""
        folder = os.path.join(self.out, name + ".tmk")
        shutil.rmtree(folder, ignore_errors=True)
        done = subprocess.run([self.tidemark, "run", "-o", folder, "--", *command], env={**os.environ, **more},
                              capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{name}: status {done.returncode}: {done.stderr[-1500:]}")
        status = subprocess.run([self.tidemark, "check", folder], capture_output=True, text=True, check=False)
        self.add(f"{name}: trace is whole", status.returncode == 0, said=status.stdout[-200:])
        return done.stdout, folder

    def rows(self, folder, sql):
        done = subprocess.run([self.tidemark, "query", folder, sql, "--format", "csv"], capture_output=True, text=True,
                              check=True)
        return list(csv.reader(io.StringIO(done.stdout)))[1:]

    def held(self, folder, owner):
        """Bytes and number of an owner's segments that were never given back."""
        (row,) = self.rows(folder, "SELECT ifnull(sum(size), 0), count(*) FROM segments WHERE free_ns IS NULL "
                                   f"AND on_device AND owner = '{owner}'")
        return int(row[0]), int(row[1])

    def rest(self, name, folder):
        """What the driver counts to the process beyond its segments, at each look."""
        rests = [int(row[0]) for row in self.rows(folder, """
            SELECT s.own - (SELECT ifnull(sum(size), 0) FROM segments g WHERE on_device AND g.device = s.device
                            AND g.alloc_ns <= s.time_ns AND (g.free_ns IS NULL OR g.free_ns > s.time_ns))
            FROM samples s WHERE s.own IS NOT NULL ORDER BY s.time_ns""")]
        accounts = self.rows(folder, "SELECT device, part, owner, bytes FROM accounting WHERE moment = 'peak'")
        falls = [(a, b) for a, b in zip(rests, rests[1:]) if b < a]
        self.add(f"{name}: beyond the segments, never negative", rests and min(rests) >= 0, n=len(rests),
                 least=min(rests, default=None), most=max(rests, default=None), falls=falls[:5], accounts=accounts)


def check_torch(checks, name, workload, conf=""):
    script = os.path.join(WORKLOADS, workload + ".py")
    more = {CONF: conf} if conf else {}
    out, folder = checks.run(name, [sys.executable, os.path.join(HERE, "card_torch.py"), script], **more)
    said = json.loads(out.splitlines()[-1])
    held, n = checks.held(folder, "torch")
    checks.add(f"{name}: segments of torch are what it has reserved", held == said["reserved"], held=held, segments=n,
               by_kind=checks.rows(folder, "SELECT kind, owner, library, count(*), sum(size) FROM segments "
                                           "WHERE free_ns IS NULL GROUP BY 1, 2, 3"), **said)
    (row,) = checks.rows(folder, "SELECT max_allocated, allocated, reserved FROM devices WHERE device = 'cuda:0'")
    found = dict(zip(("max_allocated", "allocated", "reserved"), map(int, row)))
    checks.add(f"{name}: blocks are what it has allocated", all(found[key] == said[key] for key in found), found=found)
    checks.rest(name, folder)


def check_list(checks, name, *options):
    """Kinds and bytes of a plain program's list; a freed one's address may be another's later."""
    program = os.path.join(checks.out, name)
    subprocess.run(["nvcc", *options, "-o", program, os.path.join(HERE, "plain.cu")], check=True)
    out, folder = checks.run(name, [program])
    listed = sorted(tuple(line.split()) for line in out.splitlines())
    state = "CASE WHEN free_ns IS NULL THEN 'alive' ELSE 'freed' END"
    found = checks.rows(folder, f"SELECT kind, address, size, {state} FROM segments WHERE kind <> 'pool'")
    found += checks.rows(folder, f"SELECT 'async', address, size, {state} FROM allocations")
    found = sorted(map(tuple, found))
    checks.add(f"{name}: segments are those that it lists", found == listed, n=len(listed),
               missing=[row for row in listed if row not in found], more=[row for row in found if row not in listed],
               owners=checks.rows(folder, "SELECT DISTINCT owner, library FROM segments"),
               pools=checks.rows(folder, "SELECT size, free_ns IS NOT NULL FROM segments WHERE kind = 'pool'"))
    refused = checks.rows(folder, "SELECT requested, source FROM ooms")
    checks.add(f"{name}: the refusal is there", refused == [[str(1 << 50), "driver"]], refused=refused)
    checks.rest(name, folder)


def check_cupy(checks, name):
    out, folder = checks.run(name, [sys.executable, os.path.join(HERE, "card_cupy.py")])
    said = json.loads(out.splitlines()[-1])
    held, n = checks.held(folder, "cupy")
    owners = checks.rows(folder, "SELECT owner, library, kind, count(*), sum(size) FROM segments GROUP BY 1, 2, 3")
    checks.add(f"{name}: segments of CuPy are what its pool holds", held == said["reserved"], held=held, segments=n,
               owners=owners, **said)
    checks.rest(name, folder)


def check_jax(checks, name, **more):
    out, folder = checks.run(name, [sys.executable, os.path.join(HERE, "card_jax.py")], **more)
    said = json.loads(out.splitlines()[-1])
    held, n = checks.held(folder, "jax")
    owners = checks.rows(folder, "SELECT owner, library, kind, count(*), sum(size) FROM segments WHERE free_ns IS NULL "
                                 "GROUP BY 1, 2, 3")
    pool = said.get("pool_bytes")
    checks.add(f"{name}: segments of JAX hold what it uses",
               held == pool if pool else held >= said.get("bytes_in_use", 1) > 0, held=held, segments=n, owners=owners,
               **said)
    checks.rest(name, folder)


def check_profiler(checks, name):
    command = [sys.executable, os.path.join(HERE, "profiled.py")]
    plain = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    out, _ = checks.run(name, command)
    said = json.loads(out.splitlines()[-1])
    checks.add(f"{name}: torch.profiler sees the same kernels and blocks",
               said == plain and plain["kernels"] > 0 and plain["memory"] > 0, alone=plain, watched=said)


CHECKS = {
    "encoder": lambda c, n: check_torch(c, n, "encoder"),
    "lora": lambda c, n: check_torch(c, n, "lora"),
    "expandable": lambda c, n: check_torch(c, n, "encoder", "expandable_segments:True"),
    "async": lambda c, n: check_torch(c, n, "encoder", "backend:cudaMallocAsync"),
    "cupy": check_cupy,
    "jax": check_jax,
    "jax_grows": lambda c, n: check_jax(c, n, XLA_PYTHON_CLIENT_PREALLOCATE="false"),
    "plain": check_list,
    "plain_shared": lambda c, n: check_list(c, n, "-cudart", "shared"),
    "profiler": check_profiler,
}


def main():
    tidemark, out, names = command_line(__doc__)
    checks = Card(tidemark, out)
    for name in names or CHECKS:
        try:
            CHECKS[name](checks, name)
        except (RuntimeError, subprocess.SubprocessError, ValueError, KeyError) as reason:
            checks.add(f"{name}: runs", False, why=str(reason)[-1500:])
    checks.save(out, "check_card")
    sys.exit(checks.exit_status())


main()
